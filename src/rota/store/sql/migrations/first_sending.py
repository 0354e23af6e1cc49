"""The tables of the first revision for what runs have under way: messages, permits, places, effects."""

import sqlalchemy as sa
from alembic import op

from rota.store.sql.migrations.kinds import INSTANT, NAME, one_of, within_dates


def make_sending_tables() -> None:
    _make_deliveries()
    _make_permits()
    _make_places()
    _make_effects()


def _make_deliveries() -> None:
    op.create_table(
        "deliveries",
        sa.Column("run_id", NAME, primary_key=True),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("schedule_id", NAME, nullable=False),
        sa.Column("job", NAME, nullable=False),
        sa.Column("state", NAME, nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("first_at", INSTANT, nullable=False),
        sa.Column("next_at", INSTANT),
        sa.Column("sent_at", INSTANT),
        sa.Column("error", sa.Text()),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("sends", sa.Integer(), nullable=False),
        one_of("deliveries", "state", ("sending", "retrying", "sent", "dead")),
        within_dates("deliveries", "first_at"),
        within_dates("deliveries", "next_at"),
        within_dates("deliveries", "sent_at"),
        sqlite_strict=True,
    )
    op.create_index(
        "ix_deliveries_to_take",
        "deliveries",
        ["job", "state", "next_at", "run_id"],
        sqlite_where=sa.text("next_at IS NOT NULL"),
        postgresql_where=sa.text("next_at IS NOT NULL"),
    )
    op.create_index(
        "ix_deliveries_dead",
        "deliveries",
        ["run_id"],
        sqlite_where=sa.text("state IN ('dead')"),
        postgresql_where=sa.text("state IN ('dead')"),
    )


def _make_permits() -> None:
    op.create_table(
        "permits",
        sa.Column("run_id", NAME, primary_key=True),
        sa.Column("job", NAME, nullable=False),
        sqlite_with_rowid=False,
        sqlite_strict=True,
    )
    op.create_index("ix_permits_job", "permits", ["job"])


def _make_places() -> None:
    op.create_table(
        "places",
        sa.Column("schedule_id", NAME, primary_key=True),
        sa.Column("place", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("run_id", NAME, nullable=False),
        sa.CheckConstraint("place BETWEEN 0 AND 1", name=op.f("ck_places_place")),
        sqlite_with_rowid=False,
        sqlite_strict=True,
    )
    op.create_index("uq_places_run_id", "places", ["run_id"], unique=True)


def _make_effects() -> None:
    op.create_table(
        "effects",
        sa.Column("run_id", NAME, primary_key=True),
        sa.Column("name", NAME, primary_key=True),
        sa.Column("begun_by", sa.Integer(), nullable=False),
        sa.Column("begun_at", INSTANT, nullable=False),
        sa.Column("recorded_at", INSTANT),
        sa.Column("result", sa.Text()),
        within_dates("effects", "begun_at"),
        within_dates("effects", "recorded_at"),
        sqlite_with_rowid=False,
        sqlite_strict=True,
    )
