"""What to send to an API that it has not been told about: strategies, and bodies with one thing wrong."""

import copy
from collections.abc import Iterator
from typing import cast

from hypothesis import strategies as st

from tests.api.conftest import JOB, Body

Path = tuple[str | int, ...]

VALID_SCHEDULES: list[Body] = [
    {
        "id": "report-7",
        "job": JOB,
        "timezone": "America/New_York",
        "recurrence": {"cron": "0 9 * * 1-5"},
        "gap": "forward",
        "fold": "both",
        "period": "instant",
        "overdue": {"policy": "latest_only", "grace": "PT1M"},
        "overlap": "allow",
        "params": {"report": "sales", "days": [1, 2.5, None, True]},
        "labels": {"customer": "acme"},
        "starts_at": "2026-02-01T00:00:00Z",
        "ends_at": "2027-02-01T00:00:00Z",
        "max_occurrences": 30,
    },
    {"job": JOB, "timezone": "Europe/London", "recurrence": {"at": "2030-06-01T08:30"}},
    {
        "job": JOB,
        "timezone": "Pacific/Apia",
        "recurrence": {
            "rrule": "DTSTART:20260105T090000\nRRULE:FREQ=WEEKLY;BYDAY=MO\nEXDATE:20260112T090000"
        },
        "overdue": {"policy": "catch_up_all", "max_age": "P7D"},
    },
    {
        "job": JOB,
        "timezone": "UTC",
        "recurrence": {"every": "PT15M", "anchor": "2026-01-10T00:00:00Z"},
        "overdue": {"policy": "expire", "deadline": "PT5M"},
    },
]
VALID_PREVIEWS: list[Body] = [
    {name: body[name] for name in ("timezone", "recurrence", "gap", "fold") if name in body}
    | {"after": "2026-03-28T00:00:00Z", "count": 5}
    for body in VALID_SCHEDULES
]
VALID_EDITS: list[Body] = [
    {name: value for name, value in body.items() if name not in ("id", "job")}
    | {"boundary": boundary, "reason": "x", "replaces_pending": True}
    for body in VALID_SCHEDULES
    for boundary in ("keep_period", "now")
] + [
    {"params": {"days": None}, "labels": {"customer": None}, "overdue": {"grace": "PT5M"}},
    {"boundary": "effective_from", "effective_from": "2030-01-01T00:00:00Z", "replaces_pending": True},
]
VALID_DOCUMENTS: list[Body] = [
    {
        "schedules": {
            "report-8": {name: value for name, value in body.items() if name != "id"},
            "report-9": {"ended": True, "job": JOB},
        },
        "reason": "x",
    }
    for body in VALID_SCHEDULES
]
VALID_BACKFILLS: list[Body] = [
    {"from": "2026-01-05T00:00:00Z", "until": "2026-01-09T23:59", "spacing": "PT1M", "reason": "x"}
]
VALID_JOBS: list[Body] = [
    {
        "description": "Mails the sales.",
        "overdue": {"policy": "expire", "deadline": "PT2H"},
        "retry": {
            "max_attempts": 3,
            "initial_delay": "PT30S",
            "factor": 1.5,
            "max_delay": "PT1H",
            "jitter": 0.5,
        },
        "timeout": "PT10M",
        "lease": "PT30S",
        "params_bytes_max": 1000,
    }
]

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=20)
)
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)
near_cron = st.lists(
    st.text("0123456789*/,-LW#?", min_size=1, max_size=6)
    | st.sampled_from(["*", "0", "MON-FRI", "jan", "5L"]),
    min_size=4,
    max_size=6,
).map(" ".join)
near_instant = st.builds(
    "{:04d}-{:02d}-{:02d}T{:02d}:{:02d}{}".format,
    st.sampled_from([0, 1, 1900, 1969, 2026, 2027, 2200, 9999]),
    st.integers(0, 13),
    st.integers(0, 32),
    st.integers(0, 24),
    st.integers(0, 60),
    st.sampled_from(["", ":00", ":60", ":00Z", ":59.999999999Z", ":00+14:00", ":00-23:59", ":00+24:00", "Z"]),
)
near_duration = st.builds(
    "{}{}{}".format,
    st.sampled_from(["P", "PT", "p", "-PT", ""]),
    st.integers(0, 10**12) | st.sampled_from(["1,5", "0.0005", "1e3", "٣"]),
    st.sampled_from(["S", "M", "H", "D", "W", "Y", "s", ""]),
)
near_rrule = st.builds(
    "{}{}FREQ={};{}".format,
    st.sampled_from(
        ["", "DTSTART:20260105T090000\n", "DTSTART:99991231T235959\n", "DTSTART;TZID=UTC:20260105T090000\n"]
    ),
    st.sampled_from(["RRULE:", "", "rrule:", "EXRULE:"]),
    st.sampled_from(["YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY", "NEVER"]),
    st.lists(
        st.sampled_from(
            [
                "INTERVAL=0",
                "INTERVAL=400",
                "INTERVAL=99999999999",
                "COUNT=0",
                "COUNT=1000000000",
                "UNTIL=20200101T000000Z",
                "UNTIL=99991231T235959Z",
                "BYMONTH=2",
                "BYMONTHDAY=-31",
                "BYMONTHDAY=30",
                "BYDAY=53MO",
                "BYDAY=-1SU",
                "BYSETPOS=-366",
                "BYSETPOS=0",
                "BYWEEKNO=53",
                "BYYEARDAY=366",
                "BYHOUR=24",
                "BYMINUTE=59",
                "BYSECOND=60",
                "WKST=XX",
                "X=1",
            ]
        ),
        max_size=4,
    ).map(";".join),
)
near_zone = st.sampled_from(
    [
        "UTC",
        "utc",
        "Africa/Monrovia",
        "../UTC",
        "/etc/localtime",
        "America/",
        "Etc/GMT+12",
        "posixrules",
        "UTC\n",
        ".",
    ]
)
near_values = near_cron | near_instant | near_duration | near_rrule | near_zone | st.text(max_size=200)
values = near_values | json_values

hostile_text = st.text(max_size=30) | st.sampled_from(
    [
        ".",
        "..",
        "a/b",
        "a\\b",
        "%00",
        "\x00",
        "a" * 5_000,
        "🕐",
        "\u202e",
        "'; --",
        "a.1.20260110T130000Z",
        "{}",
        "*",
        "é",
    ]
)


@st.composite
def mutated(draw: st.DrawFn, valid: list[Body]) -> Body:
    """A valid body with up to three members replaced, left out or added."""
    body = copy.deepcopy(draw(st.sampled_from(valid)))
    for _ in range(draw(st.integers(0, 3))):
        container, key = draw(st.sampled_from(list(_places(body))))
        if isinstance(container, dict):
            match draw(st.sampled_from(["replace", "replace", "replace", "remove", "add"])):
                case "replace":
                    container[key] = draw(values)
                case "remove":
                    container.pop(str(key), None)
                case _:
                    container[draw(st.text(max_size=10))] = draw(values)
    return body


def _places(value: object) -> Iterator[tuple[dict[object, object], object]]:
    if isinstance(value, dict):
        for key, member in value.items():
            yield cast("dict[object, object]", value), key
            yield from _places(member)
    if not value or not isinstance(value, dict):
        yield {}, ""
