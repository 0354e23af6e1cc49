"""The first tables: schedules and their history, runs and their deliveries, partitions, and the service itself."""

import sqlalchemy as sa
from alembic import op

from rota.store.sql.migrations.first_sending import make_sending_tables
from rota.store.sql.migrations.first_service import make_service_tables
from rota.store.sql.migrations.first_storage import set_storage
from rota.store.sql.migrations.kinds import FRACTION, INSTANT, LONG, NAME, TRUTH, one_of, within_dates

revision = "0001"
down_revision = None

WORKS_FROM = "0001"


def upgrade() -> None:
    _make_schedules()
    _make_schedule_labels()
    _make_cadences()
    _make_zone_rules()
    _make_versions()
    _make_suspensions()
    _make_runs()
    _make_run_indexes()
    _make_results()
    _make_outbox()
    _make_attempts()
    _make_skips()
    make_sending_tables()
    make_service_tables()
    set_storage()


def _make_schedules() -> None:
    op.create_table(
        "schedules",
        sa.Column("id", NAME, primary_key=True),
        sa.Column("slot", sa.Integer(), nullable=False),
        sa.Column("partition", sa.Integer(), nullable=False),
        sa.Column("job", NAME, nullable=False),
        sa.Column("labels", sa.Text(), nullable=False),
        sa.Column("status", NAME, nullable=False),
        sa.Column("status_reason", sa.Text()),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("next_scheduled_at", INSTANT),
        sa.Column("next_due", INSTANT),
        sa.Column("latest_version", sa.Integer(), nullable=False),
        sa.Column("revision", LONG, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.Column("history_from", INSTANT, nullable=False),
        sa.Column("careful_until", INSTANT),
        sa.Column("turn", sa.Integer(), nullable=False, server_default=sa.text("0")),
        sa.Column("definition_digest", sa.Text(), nullable=False),
        sa.Column("cadence_id", NAME),
        sa.Column("period", sa.Text()),
        sa.Column("series", sa.Integer()),
        sa.Column("named_until", INSTANT),
        sa.Column("lateness_max", LONG),
        sa.CheckConstraint("revision >= 1", name=op.f("ck_schedules_revision")),
        one_of("schedules", "status", ("active", "paused", "error", "ended")),
        within_dates("schedules", "next_scheduled_at"),
        within_dates("schedules", "next_due"),
        sqlite_strict=True,
    )
    op.create_index(
        "ix_schedules_due",
        "schedules",
        ["partition", "next_due", "id"],
        sqlite_where=sa.text("next_due IS NOT NULL AND status IN ('active', 'ended')"),
        postgresql_where=sa.text("next_due IS NOT NULL AND status IN ('active', 'ended')"),
    )
    op.create_index(
        "ix_schedules_awaiting",
        "schedules",
        ["id"],
        sqlite_where=sa.text("version != latest_version"),
        postgresql_where=sa.text("version != latest_version"),
    )


def _make_schedule_labels() -> None:
    op.create_table(
        "schedule_labels",
        sa.Column("key", NAME, primary_key=True),
        sa.Column("value", NAME, primary_key=True),
        sa.Column("schedule_id", NAME, primary_key=True),
        sqlite_with_rowid=False,
        sqlite_strict=True,
    )


def _make_cadences() -> None:
    op.create_table(
        "cadences",
        sa.Column("id", NAME, primary_key=True),
        sa.Column("recurrence", sa.Text(), nullable=False),
        sa.Column("timezone", sa.Text(), nullable=False),
        sa.Column("gap", sa.Text(), nullable=False),
        sa.Column("fold", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sqlite_strict=True,
    )


def _make_zone_rules() -> None:
    op.create_table(
        "zone_rules",
        sa.Column("timezone", NAME, primary_key=True),
        sa.Column("fingerprint", NAME, primary_key=True),
        sa.Column("tzdata", sa.Text(), nullable=False),
        sa.Column("offsets", sa.Text(), nullable=False),
        sqlite_strict=True,
    )


def _make_versions() -> None:
    op.create_table(
        "versions",
        sa.Column("schedule_id", NAME, primary_key=True),
        sa.Column("number", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("cadence_id", NAME, nullable=False),
        sa.Column("definition", sa.Text(), nullable=False),
        sa.Column("params", sa.Text(), nullable=False),
        sa.Column("fold", sa.Text(), nullable=False),
        sa.Column("period", sa.Text(), nullable=False),
        sa.Column("tzdata", sa.Text(), nullable=False),
        sa.Column("timezone", NAME, nullable=False),
        sa.Column("fingerprint", NAME, nullable=False),
        sa.Column("effective_from", INSTANT, nullable=False),
        sa.Column("effective_until", INSTANT),
        sa.Column("last_scheduled_at", INSTANT),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("actor", sa.Text()),
        sa.Column("reason", sa.Text()),
        sa.Column("boundary", NAME, nullable=False),
        sa.Column("series", sa.Integer(), nullable=False),
        sa.Column("counts_from", INSTANT),
        sa.Column("named_before", sa.Integer(), nullable=False),
        sa.Column("named_until", INSTANT),
        sa.Column("lateness_max", LONG),
        sa.Column("overlap", NAME, nullable=False),
        one_of("versions", "boundary", ("keep_period", "now")),
        one_of("versions", "overlap", ("allow", "skip", "queue")),
        sqlite_strict=True,
    )
    op.create_index(
        "ix_versions_lasting",
        "versions",
        ["timezone", "fingerprint", "schedule_id"],
        sqlite_where=sa.text("effective_until IS NULL"),
        postgresql_where=sa.text("effective_until IS NULL"),
    )


def _make_suspensions() -> None:
    op.create_table(
        "suspensions",
        sa.Column("schedule_id", NAME, primary_key=True),
        sa.Column("from_at", INSTANT, primary_key=True),
        sa.Column("until_at", INSTANT),
        sa.Column("reason", NAME, nullable=False),
        sa.Column("apply_overdue", TRUTH, nullable=False),
        one_of("suspensions", "reason", ("paused", "error")),
        sqlite_with_rowid=False,
        sqlite_strict=True,
    )


def _make_runs() -> None:
    op.create_table(
        "runs",
        sa.Column("run_id", NAME, primary_key=True),
        sa.Column("schedule_id", NAME, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("scheduled_at", INSTANT, nullable=False),
        sa.Column("due_at", INSTANT, nullable=False),
        sa.Column("named_local", LONG, nullable=False),
        sa.Column("offset_seconds", sa.Integer(), nullable=False),
        sa.Column("period_key", NAME, nullable=False),
        sa.Column("origin", NAME, nullable=False),
        sa.Column("job", NAME, nullable=False),
        sa.Column("partition", sa.Integer(), nullable=False),
        sa.Column("state", NAME, nullable=False),
        sa.Column("reason", sa.Text()),
        sa.Column("planned_at", INSTANT),
        sa.Column("admitted_at", INSTANT),
        sa.Column("started_at", INSTANT),
        sa.Column("finished_at", INSTANT),
        sa.Column("attempt", sa.Integer(), nullable=False, server_default=sa.text("0")),
        sa.Column("available_at", INSTANT),
        sa.Column("progress_fraction", FRACTION),
        sa.Column("progress_message", sa.Text()),
        sa.Column("error", sa.Text()),
        sa.Column("cancel_requested_at", INSTANT),
        sa.Column("turn", sa.Integer(), nullable=False, server_default=sa.text("0")),
        sa.Column("second_pass", TRUTH, nullable=False),
        sa.Column("carried_by", sa.Integer()),
        one_of("runs", "origin", ("schedule", "backfill", "manual", "replay")),
        one_of(
            "runs",
            "state",
            (
                "planned",
                "held",
                "waiting",
                "queued",
                "running",
                "succeeded",
                "failed",
                "cancelled",
                "moot",
                "skipped",
            ),
        ),
        within_dates("runs", "due_at"),
        sqlite_strict=True,
    )


def _make_run_indexes() -> None:
    op.create_index(
        "uq_runs_schedule_id_period_key",
        "runs",
        ["schedule_id", "period_key"],
        unique=True,
        sqlite_where=sa.text("state != 'skipped' OR reason = 'on_request'"),
        postgresql_where=sa.text("state != 'skipped' OR reason = 'on_request'"),
    )
    op.create_index(
        "ix_runs_planned",
        "runs",
        ["partition", "due_at", "run_id"],
        sqlite_where=sa.text("state = 'planned'"),
        postgresql_where=sa.text("state = 'planned'"),
    )
    op.create_index(
        "ix_runs_waiting",
        "runs",
        ["partition", "run_id"],
        sqlite_where=sa.text("state = 'waiting'"),
        postgresql_where=sa.text("state = 'waiting'"),
    )
    op.create_index(
        "ix_runs_parked",
        "runs",
        ["schedule_id", "due_at", "run_id"],
        sqlite_where=sa.text("state IN ('planned', 'held')"),
        postgresql_where=sa.text("state IN ('planned', 'held')"),
    )
    op.create_index(
        "ix_runs_schedule_id_scheduled_at_run_id", "runs", ["schedule_id", "scheduled_at", "run_id"]
    )
    op.create_index("ix_runs_scheduled_at_run_id", "runs", ["scheduled_at", "run_id"])


def _make_results() -> None:
    op.create_table(
        "results",
        sa.Column("run_id", NAME, primary_key=True),
        sa.Column("result", sa.Text(), nullable=False),
        sqlite_strict=True,
    )


def _make_outbox() -> None:
    op.create_table(
        "outbox",
        sa.Column("job", NAME, primary_key=True),
        sa.Column("turn", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("available_at", INSTANT, primary_key=True),
        sa.Column("run_id", NAME, primary_key=True),
        sa.Column("attempt", sa.Integer(), nullable=False),
        within_dates("outbox", "available_at"),
        sqlite_with_rowid=False,
        sqlite_strict=True,
    )


def _make_attempts() -> None:
    op.create_table(
        "attempts",
        sa.Column("run_id", NAME, primary_key=True),
        sa.Column("number", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("worker", sa.Text(), nullable=False),
        sa.Column("partition", sa.Integer(), nullable=False),
        sa.Column("opened_at", INSTANT, nullable=False),
        sa.Column("lease_expires_at", INSTANT, nullable=False),
        sa.Column("finished_at", INSTANT),
        sa.Column("outcome", NAME),
        sa.Column("error", sa.Text()),
        one_of(
            "attempts",
            "outcome",
            ("succeeded", "failed", "timed_out", "lost", "interrupted", "cancelled", "moot"),
        ),
        within_dates("attempts", "lease_expires_at"),
        sqlite_with_rowid=False,
        sqlite_strict=True,
    )
    op.create_index(
        "ix_attempts_open",
        "attempts",
        ["partition", "lease_expires_at", "run_id"],
        sqlite_where=sa.text("finished_at IS NULL"),
        postgresql_where=sa.text("finished_at IS NULL"),
    )


def _make_skips() -> None:
    op.create_table(
        "skips",
        sa.Column("schedule_id", NAME, primary_key=True),
        sa.Column("from_at", INSTANT, primary_key=True),
        sa.Column("version", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("reason", NAME, primary_key=True),
        sa.Column("until_at", INSTANT, nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("note", sa.Text()),
        one_of(
            "skips",
            "reason",
            ("expired", "superseded", "paused", "overlap", "period_used", "on_request", "ended", "error"),
        ),
        within_dates("skips", "from_at"),
        within_dates("skips", "until_at"),
        sqlite_with_rowid=False,
        sqlite_strict=True,
    )
    op.create_index(
        "ix_skips_schedule_id_version_reason_until_at_note",
        "skips",
        ["schedule_id", "version", "reason", "until_at", "note"],
    )
