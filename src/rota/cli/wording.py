"""From the words of the wire form, in which requests are judged, to those of whoever typed a command.

Tables and nothing else: which option a field is given by, and how the few sentences that name wire forms read on the
command line. What was read from a file keeps the words of the wire form, for it is written in them.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from rota.domain.errors import FieldError, InvalidRequest, TooLarge

RULE = "--cron, --at, --rrule or --every"
OVERDUE_FORMS = "latest_only[:PT1M], expire:PT5M or catch_up_all[:PT1H]"

OPTIONS_BESIDE_A_FILE = {
    "Idempotency-Key": "--idempotency-key",
    "actor": "--actor",
    "cursor": "--cursor",
    "limit": "--limit",
    "reason": "--reason",
}
"""The options that no file stands for."""

OPTIONS = OPTIONS_BESIDE_A_FILE | {
    "after": "--after",
    "at_once": "--at-once",
    "boundary": "--boundary",
    "count": "--count",
    "effective_from": "--effective-from",
    "ends_at": "--ends-at",
    "fold": "--fold",
    "from": "--from",
    "gap": "--gap",
    "id": "--id",
    "job": "--job",
    "label": "--label",
    "labels": "--label",
    "max_occurrences": "--max-occurrences",
    "origin": "--origin",
    "overdue": "--overdue",
    "overlap": "--overlap",
    "params": "--params",
    "period": "--period",
    "recurrence": RULE,
    "recurrence.anchor": "--anchor",
    "recurrence.at": "--at",
    "recurrence.cron": "--cron",
    "recurrence.every": "--every",
    "recurrence.rrule": "--rrule",
    "replaces_pending": "--replace-pending",
    "schedule": "--schedule",
    "scheduled_at": "OCCURRENCE",
    "spacing": "--spacing",
    "spread": "--spread",
    "starts_at": "--starts-at",
    "state": "--state",
    "status": "--status",
    "timezone": "--timezone",
    "to": "--to",
    "until": "--until",
}
"""The option that a field is given by; a field inside of one that is here is given by the same option."""

_RULE_MISSING = 'Give one of {"cron"}, {"at"}, {"rrule"} or {"every"} as an object.'
_RULES_GIVEN = "at, cron, rrule, every, not "

PHRASES: dict[str, tuple[tuple[str, str], ...]] = {
    "Idempotency-Key": (("The Idempotency-Key", "The --idempotency-key"),),
    "at_once": (("at_once", "--at-once"), ("effective_from", "--effective-from")),
    "boundary": (
        ("keep_period, now, effective_from", "keep_period, now"),
        ("effective_from", "--effective-from"),
    ),
    "ends_at": (("starts_at", "--starts-at"), ("ends_at", "--ends-at")),
    "from": (("after until", "after --until"),),
    "starts_at": (("starts_at", "--starts-at"), ("ends_at", "--ends-at")),
    "job": (("create it by PUT /jobs/NAME", "create it by `rota jobs put NAME`"),),
    "max_occurrences": (("ends_at", "--ends-at"),),
    "overdue.policy": (
        (
            'Give an object with "policy": "catch_up_all", "latest_only" or "expire".',
            f"Give {OVERDUE_FORMS}.",
        ),
    ),
    "overdue.deadline": (('"PT5M"', "expire:PT5M"),),
    "until": (("not after from", "not after --from"),),
    "period": (("leave the field out", "leave the option out"),),
    "recurrence": (
        (_RULE_MISSING, "Give one of them."),
        (f"Give exactly one of {_RULES_GIVEN}none of them", "Give one of them"),
        (_RULES_GIVEN, "them; given are --"),
        (", ", ", --"),
    ),
    "recurrence.anchor": (
        ("Only every has an anchor", "Only --every has an anchor"),
        ("beside ", "beside --"),
    ),
    "recurrence.at": (('"gap": "forward"', "--gap forward"),),
    "recurrence.every": (("use cron or rrule", "use --cron or --rrule"),),
}
"""By field: what its sentences say in the wire form's words, and what they say here, one after the other."""


COMMANDS = (
    (re.compile(r"POST /schedules/(\S+?)/occurrences/(\S+?)/move"), r"`rota schedules move \1 \2 --to TIME`"),
    (re.compile(r'"replaces_pending": true'), "--replace-pending"),
    (re.compile(r'"boundary": "now"'), "--boundary now"),
)
"""Of conflicts, which no field names: what to do is told in commands."""


class InvalidFile(InvalidRequest):
    """The object in a file is wrong; its fields keep their names."""


class TooLargeFile(TooLarge):
    """The same, of what is too large."""


@contextmanager
def of_file() -> Iterator[None]:
    """Whatever is judged inside was read from a file."""
    try:
        yield
    except InvalidRequest as error:
        raise InvalidFile(*error.errors) from None
    except TooLarge as error:
        raise TooLargeFile(str(error), field=error.field) from None


def in_options(error: FieldError) -> FieldError:
    """The error as one of an option; as it is where no option gives its field."""
    message = error.message
    for said, says in PHRASES.get(error.field, ()):
        message = message.replace(said, says)
    return FieldError(option_of(error.field), message)


def in_commands(message: str) -> str:
    """What contradicts the stored, with the commands and options that set it right."""
    for said, says in COMMANDS:
        message = said.sub(says, message)
    return message


def beside_file(error: FieldError) -> FieldError:
    """The same, for a command whose object was read from a file: what to do is told in commands there too."""
    if error.field in OPTIONS_BESIDE_A_FILE:
        return in_options(error)
    return FieldError(error.field, in_options(error).message if error.field == "job" else error.message)


def option_of(field: str) -> str:
    """`--overdue` of `overdue.deadline`; the field itself where there is no such option."""
    path = field
    while path:
        if path in OPTIONS and not (path == "recurrence" and field != path):
            return OPTIONS[path]
        path = path.rpartition(".")[0]
    return field
