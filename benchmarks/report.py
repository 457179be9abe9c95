"""Markdown tables of result files: the numbers of each case, and symc's ratios to the best peer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.peers import PEERS

Document = dict[str, Any]
Row = dict[str, Any]
_UNITS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))


@dataclass(frozen=True)
class Column:
    """A number of a result row. ``floor`` is what cannot be told from nothing; ratios count smaller values as it."""

    title: str
    key: str
    show: Callable[[float | None], str]
    floor: float = 1e-9
    compiling: bool = False
    """Ratios are to peers that compile only: the others would win with nothing."""


def seconds(value: float | None) -> str:
    if not value:
        return "-" if value is None else "0"
    unit, size = next((pair for pair in _UNITS if value >= pair[1]), _UNITS[-1])
    return f"{value / size:.3g} {unit}"


def mebibytes(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f} MiB"


COLUMNS = (
    Column("CPU", "cpu_s", seconds),
    Column("median", "median_s", seconds),
    Column("min", "min_s", seconds),
    Column("compile cold", "compile_cold_cpu_s", seconds, floor=1e-4, compiling=True),
    Column("compile warm", "compile_warm_cpu_s", seconds, floor=1e-4, compiling=True),
    Column("start warm", "start_warm_cpu_s", seconds, compiling=True),
    Column("memory cold", "memory_cold_mib", mebibytes, floor=1.0),
    Column("memory warm", "memory_warm_mib", mebibytes, floor=1.0),
    Column("import", "import_cpu_s", seconds),
)


def load(folder: Path) -> list[Document]:
    """The results of cases in a folder, by the names of their files."""
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.t[0-9]*.json"))]


def case_table(document: Document) -> str:
    """Every peer of one case, the fastest first; peers without numbers last, with the reason."""
    units = document["case"]["units"]
    titles = ["peer", *(column.title for column in COLUMNS), *(["CPU per unit"] if units > 1 else []), "error"]
    measured = {name: row for name, row in document["rows"].items() if "failure" not in row}
    order = "cpu_s" if document["settings"]["threads"] == 1 else "median_s"
    lines = []
    for name, row in sorted(measured.items(), key=lambda item: item[1][order]):
        cells = [name, *(column.show(row[column.key]) for column in COLUMNS)]
        cells += [seconds(row["cpu_s"] / units)] if units > 1 else []
        lines.append([*cells, f"{row['error']:.0e}" + ("" if row["ok"] else " **wrong**")])
    for name, row in document["rows"].items():
        if "failure" in row:
            lines.append([name, " ".join(row["failure"].replace("|", "/").split())[:90], *[""] * (len(titles) - 2)])
    return f"### {_name(document)}\n\n{document['title']}\n\n{markdown(titles, lines)}"


def ratio_table(documents: Iterable[Document], subject: str = "symc") -> str:
    """``subject`` / best peer for every case and column, with that peer's name. Below 1 is ahead.

    Each column has its own best peer. Wrong results never count as best.
    """
    lines = []
    for document in documents:
        rows = document["rows"]
        if subject in rows and len(rows) > 1:
            lines.append([_name(document), *(_ratio(rows, column, subject) for column in COLUMNS)])
    if not lines:
        return f"No case has both {subject} and another peer."
    return f"## {subject} / best peer\n\n" + markdown(["case", *(column.title for column in COLUMNS)], lines)


def machine_line(document: Document) -> str:
    facts = document["machine"]
    return f"{facts['cpu']}, {facts['usable_cores']} cores, {facts['system']}, revision {facts['revision']}"


def _ratio(rows: dict[str, Row], column: Column, subject: str) -> str:
    best = _best(rows, column, subject)
    value = rows[subject].get(column.key)
    if best is None:
        return "-"
    if "failure" in rows[subject] or not rows[subject]["ok"]:
        return "**failed**"
    if value is None:
        return "-"
    return f"{max(value, column.floor) / max(rows[best][column.key], column.floor):.2f} ({best})"


def _best(rows: dict[str, Row], column: Column, subject: str) -> str | None:
    """The peer with the smallest value in the column, among those with right results."""
    found = {
        name: row[column.key]
        for name, row in rows.items()
        if name != subject
        and row.get("ok")
        and row[column.key] is not None
        and (PEERS[name].compiles or not column.compiling)
    }
    return min(found, key=found.__getitem__, default=None)


def _name(document: Document) -> str:
    settings = document["settings"]
    threads = "1 thread" if settings["threads"] == 1 else f"{settings['threads']} threads"
    pages = ", huge pages" if settings["huge_pages"] else ""
    return f"{document['workload']} / {document['case']['name']} ({threads}{pages})"


def markdown(titles: list[str], lines: list[list[str]]) -> str:
    rows = [titles, ["---"] * len(titles), *lines]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in rows) + "\n"
