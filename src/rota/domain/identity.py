"""Names of things that are derived, never random: run ids, slots, partitions, digests (I1)."""

import hashlib
import re
from datetime import datetime
from typing import NewType

from rota.domain.instants import stamp

ScheduleId = NewType("ScheduleId", str)
RunId = NewType("RunId", str)

SLOT_COUNT = 4096
"""Slots never change; a partition owns a range of them, so a partition count can change without moving a hash."""

REPLAY_PATTERN = re.compile(r"r[1-9][0-9]*", re.ASCII)
SCHEDULE_ID_PATTERN = re.compile(r"[a-z0-9][a-z0-9_-]{0,79}", re.ASCII)


def is_schedule_id(text: str) -> bool:
    return SCHEDULE_ID_PATTERN.fullmatch(text) is not None


def run_id_of(schedule_id: ScheduleId, version: int, scheduled_at: datetime) -> RunId:
    """`report-7.2.20260110T090000Z`: a schedule id has no dot, so the three parts can be read back (I1)."""
    return RunId(f"{schedule_id}.{version}.{stamp(scheduled_at)}")


def manual_run_id_of(schedule_id: ScheduleId, version: int, scheduled_at: datetime, key: str) -> RunId:
    """`report-7.2.20260110T101500Z.m-3f2a91c04d5e`: a run on request; `key` tells two of one second apart."""
    return RunId(f"{run_id_of(schedule_id, version, scheduled_at)}.m-{digest_of(key)[:12]}")


def replay_run_id_of(original: RunId, number: int) -> RunId:
    """`report-7.2.20260110T090000Z.r1`: the first replay of that run."""
    return RunId(f"{original}.r{number}")


def replayed_run_id(run_id: RunId) -> RunId | None:
    """The run that a run of this id replays; None where it replays none."""
    original, dot, last = run_id.rpartition(".")
    return RunId(original) if dot and REPLAY_PATTERN.fullmatch(last) else None


def slot_of(schedule_id: ScheduleId) -> int:
    """The schedule's slot, 0 to 4095: the same in every process, language and year."""
    return int.from_bytes(hashlib.blake2b(schedule_id.encode(), digest_size=8).digest(), "big") % SLOT_COUNT


def partition_of(slot: int, partition_count: int) -> int:
    """The partition that owns `slot`: contiguous, equal ranges of slots."""
    return slot * partition_count // SLOT_COUNT


def digest_of(text: str) -> str:
    """A short stable digest of a text, for cadence ids and request bodies (128 bits, hex)."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def fraction_of(text: str) -> float:
    """A number in [0, 1) that depends on the text alone: jitter that is the same when computed again."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=7).digest(), "big") / 2**56
