"""Every error of Rota: one root, the message says what to do, data as attributes.

The tree::

    RotaError
    ├── InvalidRequest          fields of a request are wrong (422); carries one `FieldError` per bad field
    ├── InvalidExpression       one recurrence expression is wrong; becomes a FieldError of its field
    ├── MalformedBody           not JSON, or JSON that Rota does not store (400)
    ├── TooLarge                over a size limit (413)
    ├── NotFound                no such schedule, run or job (404)
    ├── Conflict                the request contradicts what is stored (409)
    ├── Stale                   a conditional write met another state than it named; nothing was changed
    ├── UnreadableRow           a stored row makes no sense (500)
    ├── IllegalTransition       a run or schedule has no such transition; nothing was changed
    ├── ZoneRulesDiffer         this process's tz data is not what a cadence was computed with
    └── WrongSetting            a setting has a value that cannot be; a store's address, for example
"""

from dataclasses import dataclass


class RotaError(Exception):
    """The root: catch it to catch everything Rota raises on purpose."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """One bad field: `field` is a dotted path in wire names (`recurrence.cron`), `message` says what to do."""

    field: str
    message: str


class InvalidRequest(RotaError):
    """The request's fields are wrong; `errors` has one entry per bad field. Correct them and send it again."""

    def __init__(self, *errors: FieldError) -> None:
        super().__init__("; ".join(f"{error.field}: {error.message}" for error in errors))
        self.errors = errors


class InvalidExpression(RotaError):
    """A recurrence expression is refused. `part` names the piece (`hour`, `BYDAY`), `problem` says what to do."""

    def __init__(self, part: str, problem: str) -> None:
        super().__init__(f"{part}: {problem}")
        self.part = part
        self.problem = problem


class MalformedBody(RotaError):
    """The text is not JSON, or holds what Rota never stores (NaN, integers beyond 2^53, NUL, lone surrogates).

    `field` is the dotted path of the member, where it is known.
    """

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field or None


class TooLarge(RotaError):
    """The value is over its size limit, which the message names in bytes; `field` is where it stands, if known."""

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class NotFound(RotaError):
    """There is no such thing; `what` is its noun, `id` what was asked for, and `hint` a sentence that helps on."""

    def __init__(self, what: str, id_: str, *, hint: str | None = None) -> None:
        super().__init__(f"There is no {what} {id_!r}." + (f" {hint}" if hint else ""))
        self.what = what
        self.id = id_


class Conflict(RotaError):
    """The request contradicts what is stored; the message says which and what to do instead.

    `field` is the field of the request that does, if it is one.
    """

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class Stale(RotaError):
    """A conditional write met another state than it named (epoch, version, status, attempt). Read again."""


class UnreadableRow(RotaError):
    """A stored row makes no sense; the message says what of it. Restore it from a backup."""


class IllegalTransition(RotaError):
    """There is no such transition; nothing was changed."""


class ZoneRulesDiffer(RotaError):
    """This process's rules for a zone differ from those the cadence was computed with; it is not computed."""


class WrongSetting(RotaError):
    """A setting has a value that cannot be; the message says what to write."""
