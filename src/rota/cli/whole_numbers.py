"""How an option that takes a whole number is read."""

import re
from collections.abc import Sequence

from cyclopts import Parameter, Token


def read_whole_number(_type: type, tokens: Sequence[Token]) -> int:
    """Decimal digits alone: cyclopts itself would round 1.5, and read 0x10."""
    (token,) = tokens
    if re.fullmatch(r"-?\d{1,18}", token.value, re.ASCII) is None:
        raise ValueError(f"{token.value!r} is not a whole number.")
    return int(token.value)


WHOLE = Parameter(converter=read_whole_number)
"""Stands beside the help of an option, in its annotation."""
