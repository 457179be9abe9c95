"""The tables of the repository's README, made from one folder of committed results.

``python -m benchmarks --readme`` writes them between the markers. Every case of the folder is in them, in the order of
`ORDER`: nothing is left out because symc loses it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from benchmarks.peers import PEERS
from benchmarks.report import Document, Row, markdown, seconds

PUBLISHED = "cpu"
"""The folder under ``results/`` that the README shows."""
BEGIN, END = "<!-- benchmarks: begin -->", "<!-- benchmarks: end -->"
ORDER = ("small_call", "rosenbrock", "black_scholes", "activations", "chain", "softmax", "many_shapes", "new_sizes",
         "reductions", "layernorm", "logistic_regression", "mlp", "hvp", "cnn", "recurrent", "transformer",
         "hierarchical", "lorenz", "nbody", "deep", "concurrent", "threads", "arrays", "everyday")  # fmt: skip
"""Workloads in the order of the tables: small calls, loops over arrays, models, loops of steps, large graphs."""


def update(readme: Path, documents: Iterable[Document]) -> None:
    """Replace what is between the markers."""
    text = readme.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    readme.write_text(f"{before}{BEGIN}\n{tables(documents)}{END}{after}")


def published(readme: Path) -> str:
    """Text between the markers now."""
    return readme.read_text().partition(BEGIN + "\n")[2].partition(END)[0]


def tables(documents: Iterable[Document]) -> str:
    """Calls, then compiling and starting: one row a case, whatever it says."""
    documents = list(documents)
    default = cases(documents)
    huge = {name(d): d for d in documents if _compared(d) and d["settings"]["huge_pages"]}
    calls = [_call_row(d, huge.get(name(d))) for d in default]
    starts = [_start_row(d) for d in default]
    titles = ["case", "symc", "best peer", "ratio", "huge pages", "to loops by hand"]
    start_titles = ["case", "compile, cold", "ratio", "compile, warm", "ratio", "start, warm", "ratio", "memory"]
    return "\n".join([
        _summary(default), markdown(titles, calls), _STARTS, markdown(start_titles, starts), _machine(default),
    ])  # fmt: skip


def cases(documents: Iterable[Document]) -> list[Document]:
    """The rows of the tables, in their order."""
    compared = [d for d in documents if _compared(d) and not d["settings"]["huge_pages"]]
    return sorted(compared, key=_place)


def name(document: Document) -> str:
    """The title of a row."""
    return f"{document['workload']} {document['case']['name']}"


def others(document: Document) -> dict[str, float]:
    """CPU seconds of a call of each peer with right results, loops by hand left out."""
    return {n: r["cpu_s"] for n, r in document["rows"].items()
            if n != "symc" and r.get("ok") and r.get("cpu_s") and _is_library(n)}


_STARTS = """\
Compile is building, optimizing, compiling and the first call; start is that and the import. Cold finds empty caches,
warm those of an earlier process. Ratios are to the best peer that compiles. Memory is the peak that a warm build and
first call add to a process.
"""


def _summary(documents: list[Document]) -> str:
    ratios = [ratio for d in documents if (ratio := _ratio(d, "cpu_s", _is_library)) is not None]
    ahead = sum(ratio < 1 for ratio in ratios)
    slow = [f"{name} in {sum(name in d['rows'] for d in documents)}" for name in PEERS if PEERS[name].slow]
    return f"""\
One thread, CPU time of a call, the peers of a row in turns in one run. In {ahead} of {len(ratios)} cases symc is
ahead (a ratio below 1) of the best of NumPy, JAX, PyTorch, PyTensor, CasADi and others. Compilers that take seconds to
minutes are not in every row: {", ".join(slow)}.
The last column compares with fused loops that were written by hand for the case and compiled by Numba with fast math.
"""


def _call_row(document: Document, huge: Document | None) -> list[str]:
    row = document["rows"]["symc"]
    best = _best(document, "cpu_s", _is_library)
    peer = f"{best}, {seconds(document['rows'][best]['cpu_s'])}" if best else "-"
    return [
        name(document), seconds(row.get("cpu_s")), peer, _shown(document, "cpu_s", _is_library),
        _shown(huge, "cpu_s", _is_library) if huge else "", _shown(document, "cpu_s", lambda name: PEERS[name].by_hand),
    ]  # fmt: skip


def _start_row(document: Document) -> list[str]:
    row = document["rows"]["symc"]
    cells = [name(document)]
    for key in ("compile_cold_cpu_s", "compile_warm_cpu_s", "start_warm_cpu_s"):
        best = _best(document, key, lambda name: PEERS[name].compiles)
        ratio = _shown(document, key, lambda name: PEERS[name].compiles)
        cells += [seconds(row.get(key)), f"{ratio} {best}" if best else "-"]
    memory = row.get("memory_warm_mib")
    return [*cells, "-" if memory is None else f"{memory:.0f} MiB"]


def _is_library(name: str) -> bool:
    return not PEERS[name].by_hand


def _best(document: Document, key: str, among: Callable[[str], bool]) -> str | None:
    """The peer with the smallest value, of those with right results."""
    rows: dict[str, Row] = document["rows"]
    found = {n: r[key] for n, r in rows.items() if n != "symc" and r.get("ok") and r.get(key) and among(n)}
    return min(found, key=found.__getitem__, default=None)


def _ratio(document: Document, key: str, among: Callable[[str], bool]) -> float | None:
    best, row = _best(document, key, among), document["rows"]["symc"]
    return row[key] / document["rows"][best][key] if best and row.get("ok") and row.get(key) is not None else None


def _shown(document: Document, key: str, among: Callable[[str], bool]) -> str:
    """The ratio, in bold where symc is behind, and where it failed."""
    if not document["rows"]["symc"].get("ok"):
        return "**failed**"
    ratio = _ratio(document, key, among)
    return "" if ratio is None else f"{ratio:.2f}" if ratio < 1 else f"**{ratio:.2f}**"


def _machine(documents: list[Document]) -> str:
    """Machine and versions, once for all rows."""
    facts = documents[-1]["machine"]
    rows = [(name, row) for d in documents for name, row in d["rows"].items() if "version" in row and name != "symc"]
    versions = {name.split(".")[0].split("-")[0]: row["version"] for name, row in rows}
    named = ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))
    revisions = ", ".join(sorted({str(d["machine"]["revision"]) for d in documents}))
    load = max((d["machine"].get("load_average") or [0])[0] for d in documents)
    vectors = f" with {facts['vectors']}" if facts.get("vectors") else ""
    return f"""\
{facts["cpu"]}{vectors}, {facts["cores"]} cores, load average up to {load:.0f} (other work, equal for all peers),
{facts["system"]}, {facts["libc"]}; {named}; symc at {revisions}.
"""


def _compared(document: Document) -> bool:
    return "symc" in document["rows"] and len(document["rows"]) > 1 and document["settings"]["threads"] == 1


def _place(document: Document) -> tuple[int, str, int]:
    workload = document["workload"]
    return ORDER.index(workload) if workload in ORDER else len(ORDER), workload, document["case"].get("units", 1)
