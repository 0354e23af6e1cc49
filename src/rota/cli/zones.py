"""`rota tz check` and `apply`: what newer rules of time zones change, and taking them up."""

from cyclopts import App

from rota.cli.dry_run_tables import WAS_DRY_RUN, write_change
from rota.cli.errors import ExitCode
from rota.cli.explanations import entries_of
from rota.cli.options import ActorName, AsJson, Database, DryRun, Reason, actor_of, open_existing
from rota.cli.output import write_json, write_line, write_table
from rota.cli.tables import Column, Narrow
from rota.cli.times import locals_of
from rota.service.context import Context
from rota.service.representation import Wire
from rota.service.schedules import show_schedule
from rota.service.zone_updates import apply_zones, check_zones

DIFFS_SHOWN_MAX = 20
APPLY = "`rota tz apply` takes them up; with --dry-run it tells what that does to each schedule."
UPGRADE = "Upgrade the package tzdata here: an older release is never applied."

tz = App(name="tz", help="Check and take up new rules of time zones.")


@tz.command
def check(*, database: Database = None, json: AsJson = False) -> int:
    """Tell which zones have other rules here than schedules were computed with. Exits with 5 where one has."""
    with open_existing(database) as context:
        answer = check_zones(context)
    zones = entries_of(answer, "zones")
    if json:
        write_json(answer)
    else:
        _write_zones(answer, zones)
    return ExitCode.DIFFERENT if zones else ExitCode.DONE


@tz.command
def apply(
    *,
    dry_run: DryRun = False,
    actor: ActorName = None,
    reason: Reason = None,
    database: Database = None,
    json: AsJson = False,
) -> int:
    """Take up the rules here, for every schedule that was computed with older ones.

    It gets a version where its instants change, and is stamped where they stay. Repeating it goes on where it stopped.
    Exits with 1 where a schedule could not, with 5 where the rules here are the older ones.
    """
    who = actor_of(actor, reason)
    with open_existing(database) as context:
        answer = apply_zones(context, dry_run=dry_run, actor=who)
        write_json(answer) if json else _write_applied(context, answer)
    counts = answer["counts"]
    assert isinstance(counts, dict)  # noqa: S101 - as apply_zones makes it
    if counts["failed"]:
        return ExitCode.FAILED
    left = [zone for zone in entries_of(answer, "zones") if not zone["is_newer_here"]]
    return ExitCode.DIFFERENT if left else ExitCode.DONE


def _write_zones(answer: Wire, zones: list[Wire]) -> None:
    release = answer["tzdata"]
    if not zones:
        write_line(f"No zone differs: schedules were computed with the rules of tz data {release}, as here.")
        return
    write_table(
        [
            *("TIMEZONE", "COMPUTED WITH", "HERE", "SCHEDULES", "WITH OTHER INSTANTS"),
            Column(name="WHAT TO DO", narrow=Narrow.WRAP),
        ],
        [
            (
                zone["timezone"],
                zone["stored_tzdata"],
                zone["tzdata"],
                zone["schedules"],
                zone["schedules_changed"],
                _so(zone),
            )
            for zone in zones
        ],
    )
    write_line("")
    write_line("Schedules of these zones are left alone until then: nothing of them is admitted.")
    if any(zone["is_newer_here"] for zone in zones):
        write_line(f"The rules are newer here: {APPLY}")
    if not all(zone["is_newer_here"] for zone in zones):
        write_line(f"Some are older here: {UPGRADE}")


def _so(zone: Wire) -> str:
    if zone["tzdata"] is None:
        return "this zone is not known here"
    return "newer here: apply" if zone["is_newer_here"] else "older here: upgrade"


def _write_applied(context: Context, answer: Wire) -> None:
    counts, is_dry_run = answer["counts"], answer["dry_run"]
    assert isinstance(counts, dict)  # noqa: S101 - as apply_zones makes it
    told_of = entries_of(answer, "schedules")
    changed = [outcome for outcome in told_of if outcome["outcome"] == "version"]
    failed = [outcome for outcome in told_of if outcome["outcome"] == "failed"]
    if is_dry_run:
        for told in changed[:DIFFS_SHOWN_MAX]:
            id_ = str(told["schedule_id"])
            before = show_schedule(context, id_)
            write_change(told, before, local_of=locals_of(context, id_), now=context.clock.now())
            write_line("")
        if len(changed) > DIFFS_SHOWN_MAX:
            write_line(f"and {len(changed) - DIFFS_SHOWN_MAX} more schedules, which --json lists")
    elif changed:
        write_table(["SCHEDULE", "NEW VERSION"], [(told["schedule_id"], told["version"]) for told in changed])
    if failed:
        write_table(
            ["SCHEDULE", Column(name="COULD NOT TAKE THEM UP", narrow=Narrow.WRAP)],
            [(told["schedule_id"], told["problem"]) for told in failed],
        )
    write_line(
        f"tz data {answer['tzdata']}: {counts['version']} with a new version, "
        f"{counts['restamped']} whose instants stay, {counts['failed']} failed"
    )
    left = [str(zone["timezone"]) for zone in entries_of(answer, "zones") if not zone["is_newer_here"]]
    if left:
        write_line(f"Left alone, since the rules here are older: {', '.join(left)}. {UPGRADE}")
    if is_dry_run:
        write_line(WAS_DRY_RUN)
