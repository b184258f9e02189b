"""Run folders and their tables: one writer, one reader."""

from agentic_rl.results.reader import RunInfo, runs, scan
from agentic_rl.results.record import RunRecord, new_record, read_record
from agentic_rl.results.schemas import TABLES, TIMES
from agentic_rl.results.trajectories import trajectory_row
from agentic_rl.results.writer import RunFolder

__all__ = [
    "TABLES",
    "TIMES",
    "RunFolder",
    "RunInfo",
    "RunRecord",
    "new_record",
    "read_record",
    "runs",
    "scan",
    "trajectory_row",
]
