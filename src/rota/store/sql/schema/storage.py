"""How PostgreSQL is to store tables that change much; SQLite knows nothing of it.

Room in a page (`fillfactor`) lets an update stay in it, and where no indexed column changes, touch no index (HOT). What
a partial index asks for counts as indexed: so neither `next_due` of schedules nor `state` of runs ever changes in that
way, whatever the room, nor does an attempt's end.

PostgreSQL vacuums a table once a fifth of it is dead. Of a table with a long history that is too late: in the part that
is at work, everything would be dead by then.
"""

SCHEDULES = {"autovacuum_vacuum_scale_factor": 0.02, "autovacuum_analyze_scale_factor": 0.02}
"""Each occurrence leaves a dead row and dead entries of the index of what is due, which every step reads."""

RUNS = {
    "fillfactor": 90,
    "autovacuum_vacuum_scale_factor": 0.01,
    "autovacuum_vacuum_insert_scale_factor": 0.05,
    "autovacuum_analyze_scale_factor": 0.02,
}
"""Few updates each, then history. The room is for progress, which handlers may report every few seconds."""

ATTEMPTS = {"autovacuum_vacuum_scale_factor": 0.01, "autovacuum_vacuum_insert_scale_factor": 0.05}
"""The index of the open ones is small, and recovery reads it from its dead beginning."""

OUTBOX = {
    "autovacuum_vacuum_scale_factor": 0,
    "autovacuum_vacuum_threshold": 1000,
    "autovacuum_vacuum_cost_delay": 0,
    "autovacuum_analyze_scale_factor": 0,
    "autovacuum_analyze_threshold": 10000,
}
"""A queue: whatever comes in goes again, and who claims reads from where the dead lie. It is vacuumed at every turn."""

PARTITIONS = {
    "fillfactor": 50,
    "autovacuum_vacuum_scale_factor": 0,
    "autovacuum_vacuum_threshold": 500,
}
"""A page or two, read in every commit and renewed every few seconds: all updates are HOT."""

IDEMPOTENCY = {"autovacuum_vacuum_scale_factor": 0.05}
"""Every answer is deleted after a day."""

DELIVERIES = {
    "fillfactor": 70,
    "autovacuum_vacuum_scale_factor": 0,
    "autovacuum_vacuum_threshold": 1000,
    "autovacuum_vacuum_cost_delay": 0,
}
"""A queue as well, of which each row is changed twice or more before it goes."""

PERMITS = {"autovacuum_vacuum_scale_factor": 0, "autovacuum_vacuum_threshold": 500}
"""Counted at each claim, so the dead are in the way."""
