"""What must hold when the story of an edit has ended, judged from what was stored, told and received."""

from collections import Counter
from dataclasses import dataclass
from typing import cast

from rota.demo.checks import Check
from rota.demo.decisions import Decision, Place
from rota.demo.walks import Life
from rota.service.representation import Wire

OWED = "report-7.4.20260113T140000Z"
PLANNED = "report-7.4.20260114T140000Z"
NEXT = "report-7.5.20260115T090000Z"
RUNS = [OWED, PLANNED, NEXT]
SUPPRESSED = "2026-01-14T09:00:00Z"
NEXT_LOCAL = "2026-01-15T09:00"
KEPT = ("version", "scheduled_at", "due_at", "period_key", "planned_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """What a dispatcher wanted to commit, what was stored by then, and what the store answered."""

    decision: Decision
    latest_version: int
    """When it had decided."""
    revision: int
    cursor: Place
    epoch: int
    boundary: str
    answer: str
    is_unchanged: bool
    """Whether what was stored stayed as it was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What the scenes saw."""

    planned: Wire
    """Tomorrow's run, before the edit."""
    told: Wire
    """The answer of the dry run."""
    by_revision: Refusal
    by_epoch: Refusal
    versions: list[Wire]
    entries: list[Wire]
    """What became of every occurrence, oldest first."""
    mails: list[str]
    lives: tuple[Life, ...]

    @property
    def runs(self) -> list[Wire]:
        return [entry for entry in self.entries if entry["kind"] == "run"]

    @property
    def skips(self) -> list[Wire]:
        return [entry for entry in self.entries if entry["kind"] == "skip"]

    def run(self, identity: str) -> Wire:
        """Empty where it is not there."""
        return next((run for run in self.runs if run["run_id"] == identity), {})


def check_walkthrough(seen: Evidence) -> list[Check]:
    return [*_check_refusals(seen), *_check_occurrences(seen), *_check_told(seen), *_check_lives(seen)]


def _check_refusals(seen: Evidence) -> list[Check]:
    first, second = seen.by_revision, seen.by_epoch
    return [
        Check(
            promise="the first dispatcher had read and decided by version 4 before there was a version 5",
            holds=first.latest_version == first.decision.read.version == 4,
        ),
        Check(
            promise="what it would have written leads version 4 on, past the boundary of version 5",
            holds=first.decision.written.version == 4
            and (first.decision.written.instant or "") > first.boundary,
        ),
        Check(
            promise="it was refused for the revision, which the edit had raised: its lease was still its own",
            holds=first.answer == "stale"
            and first.is_unchanged
            and first.revision > first.decision.revision
            and first.epoch == first.decision.epoch,
        ),
        Check(
            promise="what it decided next was refused for the epoch, once its lease was the second dispatcher's",
            holds=second.answer == "fenced" and second.is_unchanged and second.epoch > second.decision.epoch,
        ),
    ]


def _check_occurrences(seen: Evidence) -> list[Check]:
    kept, new = seen.run(PLANNED), seen.run(NEXT)
    days = Counter(str(run["named_local"])[:10] for run in seen.runs)
    return [
        Check(
            promise="tomorrow's occurrence, planned before the edit, ran as it was: its instant, its day, version 4",
            holds=seen.planned["state"] == "planned"
            and all(kept.get(name) == seen.planned[name] for name in KEPT)
            and kept.get("admitted_at") == kept.get("scheduled_at"),
        ),
        Check(
            promise="each day has one run: today's, which was owed, tomorrow's, and the next; no second copy",
            holds=[run["run_id"] for run in seen.runs] == RUNS and set(days.values()) == {1},
        ),
        Check(
            promise="the next one that was newly computed is 09:00 in London, by version 5",
            holds=(new.get("version"), new.get("local"), new.get("offset")) == (5, NEXT_LOCAL, "+00:00"),
        ),
        Check(
            promise="tomorrow's 09:00 in London is recorded as suppressed, by the name of the run that used its day",
            holds=[(skip["version"], skip["from"], skip["reason"], skip["note"]) for skip in seen.skips]
            == [(5, SUPPRESSED, "period_used", f"day:2026-01-14 is used by run {PLANNED}")],
        ),
        Check(
            promise="every run succeeded, with one mail each",
            holds=all(run["state"] == "succeeded" for run in seen.runs)
            and sorted(seen.mails) == sorted(f"<{run['run_id']}@rota.local>" for run in seen.runs),
        ),
    ]


def _check_told(seen: Evidence) -> list[Check]:
    windows = {version["version"]: version for version in seen.versions}
    return [
        Check(
            promise="version 4 ends where version 5 begins: at the boundary",
            holds=list(windows) == [1, 2, 3, 4, 5]
            and windows[4]["effective_until"] == windows[5]["effective_from"] == seen.by_revision.boundary,
        ),
        Check(
            promise="the dry run had told the boundary, what was kept, what was suppressed, and the next one",
            holds=seen.told["effective_from"] == seen.by_revision.boundary
            and _told_of(seen, "kept", "run_id") == [OWED, PLANNED]
            and _told_of(seen, "suppressed", "scheduled_at") == [SUPPRESSED]
            and _told_of(seen, "next", "scheduled_at")[:2]
            == [run["scheduled_at"] for run in seen.runs if run["run_id"] in (PLANNED, NEXT)],
        ),
    ]


def _check_lives(seen: Evidence) -> list[Check]:
    return [
        Check(
            promise=f"each of the {len(seen.lives)} lives between zones has each day once",
            holds=bool(seen.lives) and all(life.has_each_day_once for life in seen.lives),
        ),
        Check(
            promise="an edit between the two local times of its day carries the day's run or suppresses its double",
            holds=all(life.is_accounted_for for life in seen.lives),
        ),
    ]


def _told_of(seen: Evidence, section: str, name: str) -> list[object]:
    entries = cast("list[Wire]", seen.told[section])
    return [entry[name] for entry in entries]
