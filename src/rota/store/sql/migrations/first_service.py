"""The tables of the first revision for what the service itself keeps."""

import sqlalchemy as sa
from alembic import op

from rota.store.sql.migrations.kinds import INSTANT, LONG, NAME, TRUTH, within_dates


def make_service_tables() -> None:
    _make_jobs()
    _make_idempotency()
    _make_partitions()
    _make_dispatchers()
    _make_audit()
    _make_settings()


def _make_jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("name", NAME, primary_key=True),
        sa.Column("spec", sa.Text(), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.Column("lateness_max", LONG, nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("max_running", sa.Integer()),
        sa.Column("is_fetched", TRUTH, nullable=False),
        sqlite_strict=True,
    )


def _make_idempotency() -> None:
    op.create_table(
        "idempotency",
        sa.Column("key", NAME, primary_key=True),
        sa.Column("request_digest", sa.Text(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.Column("expires_at", INSTANT, nullable=False),
        sqlite_strict=True,
    )
    op.create_index("ix_idempotency_expires_at", "idempotency", ["expires_at"])


def _make_partitions() -> None:
    op.create_table(
        "partitions",
        sa.Column("partition", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("owner", sa.Text()),
        sa.Column("epoch", LONG, nullable=False),
        sa.Column("expires_at", INSTANT),
        sa.Column("checkpoint", INSTANT),
        sa.CheckConstraint("epoch BETWEEN 0 AND 9007199254740992", name=op.f("ck_partitions_epoch")),
        within_dates("partitions", "expires_at"),
        within_dates("partitions", "checkpoint"),
        sqlite_strict=True,
    )


def _make_dispatchers() -> None:
    op.create_table(
        "dispatchers",
        sa.Column("owner", NAME, primary_key=True),
        sa.Column("expires_at", INSTANT, nullable=False),
        within_dates("dispatchers", "expires_at"),
        sqlite_strict=True,
    )


def _make_audit() -> None:
    op.create_table(
        "audit",
        sa.Column("id", LONG, primary_key=True),
        sa.Column("schedule_id", NAME, nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("at", INSTANT, nullable=False),
        sa.Column("actor", sa.Text()),
        sa.Column("reason", sa.Text()),
        sa.Column("details", sa.Text(), nullable=False),
        sqlite_strict=True,
    )
    op.create_index("ix_audit_schedule_id_at_id", "audit", ["schedule_id", "at", "id"])


def _make_settings() -> None:
    op.create_table(
        "settings",
        sa.Column("name", NAME, primary_key=True),
        sa.Column("value", sa.Text(), nullable=False),
        sqlite_strict=True,
    )
