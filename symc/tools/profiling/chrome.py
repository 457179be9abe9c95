"""A trace in the format of Chrome's trace viewer, which Perfetto reads too: what was compiled, and one run by step."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

COMPILE, CALL = 1, 2


def trace_text(name: str, rows: Sequence[Any], events: Sequence[tuple[int, float, float]],
               phases: Sequence[Any]) -> str:
    """``rows``: of a profile; ``events``: (index of a row, begin, end) of the runs of steps; ``phases``: of compiling.
    """
    found = [_named(COMPILE, f"compile {name}"), _named(CALL, f"call {name}")]
    start = min((p.begin for p in phases), default=0.0)
    for p in phases:
        label = f"{p.name} {p.what}".strip()
        found.append(_event(COMPILE, label, p.begin - start, p.end - start, {"own us": round(p.own * 1e6, 1)}))
    for index, begin, end in events:
        row = rows[index]
        runs = max(row.runs, 1)
        shown = {"bytes": row.moved // runs, "flops": row.flops // runs, "lines": row.lines,
                 "GB/s": round(row.gb_per_second, 2), "GFLOP/s": round(row.gflop_per_second, 2)}
        found.append(_event(CALL, row.step.partition(" in ")[0], begin, end, shown))
    return json.dumps({"traceEvents": found, "displayTimeUnit": "ns"}, separators=(",", ":"))


def _named(process: int, name: str) -> dict:
    return {"ph": "M", "name": "process_name", "pid": process, "tid": 0, "args": {"name": name}}


def _event(process: int, name: str, begin: float, end: float, shown: dict) -> dict:
    """Times in microseconds."""
    return {"ph": "X", "name": name, "pid": process, "tid": 0, "ts": round(begin * 1e6, 4),
            "dur": round((end - begin) * 1e6, 4), "args": shown}
