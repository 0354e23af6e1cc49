"""JSON as Rota stores it: canonical text, bounded in size, depth and number range.

Canonical: keys sorted, no spaces, UTF-8 kept readable. Refused, because not every store and language keeps them: NaN
and infinities, integers beyond 2^53, NUL, lone surrogates, repeated keys, more than `DEPTH_MAX` levels.
"""

import json
import math
from collections import Counter
from typing import Any, NewType

from rota.domain.errors import MalformedBody, TooLarge

JsonText = NewType("JsonText", str)
"""Canonical JSON text, made by `encode_json` only, so that equal values are equal texts."""

DEPTH_MAX = 32
INTEGER_MAX = 2**53

TOO_DEEP = f"The JSON nests deeper than {DEPTH_MAX} levels; flatten it, or send the inner part as a string."

EMPTY_OBJECT = JsonText("{}")


def decode_json(data: bytes | str, *, bytes_max: int, levels_around: int = 0) -> Any:
    """The value of a JSON text from outside. Raises `TooLarge` (limit in bytes) or `MalformedBody`.

    It may nest deeper than what is stored by the levels around that.
    """
    try:
        encoded = data if isinstance(data, bytes) else data.encode()
        if len(encoded) > bytes_max:
            raise TooLarge(
                f"The body has {len(encoded)} bytes; at most {bytes_max} are accepted. "
                "Keep large data elsewhere and send its address."
            )
        value = json.loads(
            encoded.decode(), parse_constant=_refuse_constant, object_pairs_hook=_object_without_repeats
        )
    except RecursionError:
        raise MalformedBody(TOO_DEEP) from None
    except UnicodeError:
        raise MalformedBody("The body is not UTF-8 text; encode it as UTF-8.") from None
    except json.JSONDecodeError as error:
        raise MalformedBody(f"The body is not JSON: {error.msg} at character {error.pos}.") from None
    except ValueError:
        # An integer of more digits than Python converts (a limit against quadratic time).
        raise MalformedBody("The JSON holds a number that is too long; send it as a string.") from None
    check_storable(value, depth=-levels_around)
    return value


def load_json(text: JsonText) -> Any:
    """The value of a text that `encode_json` made."""
    return json.loads(text)


def encode_json(value: Any, *, bytes_max: int | None = None) -> JsonText:
    """The canonical text of a value. Raises `MalformedBody` for what is not storable, `TooLarge` over `bytes_max`."""
    check_storable(value)
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
    if bytes_max is not None and len(text.encode()) > bytes_max:
        raise TooLarge(f"The value has {len(text.encode())} bytes as JSON; at most {bytes_max} are stored.")
    return JsonText(text)


def check_storable(value: Any, *, depth: int = 0, path: str = "") -> None:
    """Raises `MalformedBody` for the first thing in `value` that not every store can keep, with its dotted path."""
    if depth > DEPTH_MAX:
        raise MalformedBody(TOO_DEEP, field=_shortened(path))
    match value:
        case str():
            _check_text(value, path)
        case dict():
            for key, member in value.items():
                if not isinstance(key, str):
                    raise MalformedBody(
                        f"An object's keys are strings, not {type(key).__name__}.", field=path
                    )
                _check_text(key, path)
                check_storable(member, depth=depth + 1, path=f"{path}.{key}" if path else key)
        case list() | tuple():
            for number, member in enumerate(value):
                check_storable(member, depth=depth + 1, path=f"{path}.{number}" if path else str(number))
        case float() if not math.isfinite(value):
            problem = "NaN and infinities are not JSON; leave the member out or send null."
            raise MalformedBody(problem, field=path)
        case int() if abs(value) > INTEGER_MAX:
            problem = "An integer beyond 2^53 is not kept by every JSON reader; send it as a string."
            raise MalformedBody(problem, field=path)
        case None | bool() | int() | float():
            return
        case _:
            raise MalformedBody(f"A value of type {type(value).__name__} is not JSON.", field=path)


def _check_text(text: str, path: str) -> None:
    if "\x00" in text:
        raise MalformedBody(
            "A string holds a NUL character, which not every store keeps; remove it.", field=path
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        problem = "A string holds half of a surrogate pair, which is not Unicode text; remove it."
        raise MalformedBody(problem, field=path) from None


def _shortened(path: str) -> str:
    """The member at the top, where the way down is as long as it is useless."""
    return ".".join(path.split(".")[:2])


def _refuse_constant(name: str) -> Any:
    raise MalformedBody(f"{name} is not JSON; leave the member out or send null.")


def _object_without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        names = Counter(name for name, _ in pairs)
        repeated = next(name for name, times in names.items() if times > 1)
        raise MalformedBody(f"An object names the member {repeated!r} more than once; keep one of them.")
    return members
