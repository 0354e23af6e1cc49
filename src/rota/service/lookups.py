"""Which of many occurrences have their period used: asked of the store some at a time."""

from collections.abc import Iterator, Sequence

from rota.domain.cadence import Occurrence
from rota.domain.key_uses import KeyProbe, KeyUse, probe_of
from rota.domain.schedule import Version
from rota.service.context import Context

PROBED_AT_ONCE = 200


def looked_up(
    context: Context, version: Version, named: Sequence[Occurrence], *, whole_life: bool = False
) -> Iterator[tuple[Occurrence, KeyProbe, KeyUse | None]]:
    """Each of the version's occurrences with its probe, and what that found; `whole_life` as for `probe_of`."""
    for start in range(0, len(named), PROBED_AT_ONCE):
        chunk = named[start : start + PROBED_AT_ONCE]
        probes = [probe_of(version, occurrence, whole_life=whole_life) for occurrence in chunk]
        yield from zip(chunk, probes, context.store.read_key_uses(version.schedule_id, probes), strict=True)
