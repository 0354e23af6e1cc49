"""Revisions of releases to come, made up: what they do to the tables is what later ones may do."""

import shutil
from pathlib import Path

from rota.store.sql.migrations import OURS, REVISIONS, Revisions

EXPANDING, INDEXING, CONTRACTING = "9001", "9002", "9003"

_EXPANDING = f'''
import sqlalchemy as sa
from alembic import op

revision, down_revision, WORKS_FROM = "{EXPANDING}", "{REVISIONS[-1]}", "{REVISIONS[-1]}"


def upgrade() -> None:
    op.add_column("jobs", sa.Column("team", sa.Text()))
    op.add_column("schedules", sa.Column("tier", sa.Integer(), nullable=False, server_default=sa.text("1")))
    op.add_column("runs", sa.Column("region", sa.Text()))
'''
_INDEXING = f'''
from rota.store.sql.migrations.online import make_index

revision, down_revision, WORKS_FROM = "{INDEXING}", "{EXPANDING}", "{REVISIONS[-1]}"
IN_TRANSACTION = False


def upgrade() -> None:
    make_index("uq_jobs_team", "jobs", ["team"], unique=True, where="team IS NOT NULL")
'''
_CONTRACTING = f'''
from alembic import op

revision, down_revision, WORKS_FROM = "{CONTRACTING}", "{INDEXING}", "{EXPANDING}"


def upgrade() -> None:
    op.execute("ALTER TABLE jobs DROP COLUMN updated_at")
'''


def revisions_up_to(folder: Path, newest: str) -> Revisions:
    """What a later release knows, whose newest revision is that one; its files are written below `folder`."""
    files = folder / newest
    shutil.copytree(OURS.folder, files, ignore=shutil.ignore_patterns("__pycache__"))
    names = [*REVISIONS]
    for name, text in ((EXPANDING, _EXPANDING), (INDEXING, _INDEXING), (CONTRACTING, _CONTRACTING)):
        if name <= newest:
            (files / f"{name}_made_up.py").write_text(text)
            names.append(name)
    works_from = EXPANDING if newest == CONTRACTING else REVISIONS[-1]
    return Revisions(names=tuple(names), works_from=works_from, folder=files)
