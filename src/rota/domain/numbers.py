"""Numbers in a request, within their bounds."""

from collections.abc import Mapping

from rota.domain.definition import FieldErrors


def parse_number(
    errors: FieldErrors,
    value: Mapping[str, object],
    name: str,
    *,
    low: int,
    high: int,
    prefix: str = "",
    whole: bool = True,
) -> float | None:
    """The number under `name`; None, with an error noted where one was given that is not within the bounds."""
    given = value.get(name)
    if given is None:
        return None
    kinds = int if whole else (int, float)
    if isinstance(given, bool) or not isinstance(given, kinds) or not low <= given <= high:
        errors.add(f"{prefix}{name}", f"Give a {'whole ' if whole else ''}number from {low} to {high}.")
        return None
    return given
