"""Run folders and their tables: one writer, one reader."""

from agentic_rl.results.record import RunRecord, new_record, read_record
from agentic_rl.results.schemas import TABLES, TIMES
from agentic_rl.results.trajectories import trajectory_row
from agentic_rl.results.writer import RunFolder

__all__ = [
    "TABLES",
    "TIMES",
    "RunFolder",
    "RunRecord",
    "new_record",
    "read_record",
    "trajectory_row",
]
