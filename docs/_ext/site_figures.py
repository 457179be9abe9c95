"""Pictures: those that the programs of the gallery draw, and plots of the recorded benchmarks.

Every file that a block of the gallery writes is shown below the block. ``<!-- plot: calls -->`` is a plot of the
results under benchmarks/results, and ``<!-- speed tables -->`` the tables of the README, which are made of the same.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from benchmarks import readme, report
from benchmarks.peers import PEERS

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```\n", re.M | re.S)
MADE: dict[str, bytes] = {}
"""Pictures by the names of their files."""
LIGHT, DARK = ("#1b1f24", "#ffffff"), ("#d7dde4", "#131416")
OWN, OTHER = "#2f6fd0", "#c08a2e"


def show(name: str, words: str, kind: str = "") -> str:
    """An image, as HTML that needs no file beside the page's source."""
    return f'<img class="picture {kind}" src="_static/made/{name}" alt="{words}">'


# --- the gallery ------------------------------------------------------------------------------------------------------


def run_gallery(text: str) -> str:
    """The gallery with the pictures below the blocks that draw them."""
    names: dict[str, Any] = {"__name__": "gallery"}
    here = os.getcwd()

    def with_pictures(block: re.Match) -> str:
        before = set(os.listdir("."))
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(block[1], "gallery.md", "exec"), names)
        plt.close("all")
        new = sorted(set(os.listdir(".")) - before)
        MADE.update({n: Path(n).read_bytes() for n in new})
        return block[0] + "".join(f"\n{show(n, n.partition('.')[0])}\n" for n in new)

    with tempfile.TemporaryDirectory() as folder, plt.rc_context({"figure.dpi": 120}):
        os.chdir(folder)
        try:
            return BLOCK.sub(with_pictures, text)
        finally:
            os.chdir(here)


# --- benchmarks -------------------------------------------------------------------------------------------------------


def results() -> list[dict]:
    """The published results of one thread and ordinary pages, in the order of the README's tables."""
    return readme.cases(report.load(ROOT / "benchmarks" / "results" / readme.PUBLISHED))


def calls(documents: list[dict], axes: Any) -> None:
    """Time of a call of every peer, as a multiple of symc's."""
    shown: dict[str, list[tuple[float, int]]] = {}
    for k, d in enumerate(documents):
        for peer, seconds in readme.others(d).items():
            package = peer.partition(".")[0].partition("-")[0]
            shown.setdefault(package, []).append((seconds / d["rows"]["symc"]["cpu_s"], k))
    for peer, marker in zip(sorted(shown), "osDv^P*Xh<>dp" * 2):
        axes.plot(*zip(*shown[peer]), marker, label=peer, markersize=5, alpha=0.85)
    axes.axvline(1.0, color=OWN, linewidth=2)
    axes.set_xscale("log")
    axes.set_yticks(range(len(documents)), [readme.name(d) for d in documents], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("CPU time of a call, as a multiple of symc's: right of the line is slower than symc")
    axes.legend(fontsize=8, ncols=4, loc="lower left", bbox_to_anchor=(0, 1), frameon=False, labelcolor="linecolor")


def ratios(documents: list[dict], axes: Any) -> None:
    """Time of a call to the best peer's."""
    known = [(readme.name(d), d["rows"]["symc"]["cpu_s"] / min(readme.others(d).values())) for d in documents]
    heights = [math.log2(ratio) for _, ratio in known]
    axes.barh(range(len(known)), heights, color=[OWN if h < 0 else OTHER for h in heights])
    axes.set_yticks(range(len(known)), [name for name, _ in known], fontsize=8)
    ticks = range(math.floor(min(heights)), math.ceil(max(heights)) + 1)
    axes.set_xticks(list(ticks), [f"{2.0**t:g}" for t in ticks])
    axes.invert_yaxis()
    axes.set_xlabel("CPU time of a call / that of the best peer: left of 1 symc is faster")


def starts(documents: list[dict], axes: Any) -> None:
    """Time to the first result, with caches and without."""
    kinds = (("start_cold_cpu_s", OTHER, "empty caches"), ("start_warm_cpu_s", OWN, "a later process"))
    for key, color, words in kinds:
        pairs = [(d["rows"]["symc"][key], k) for k, d in enumerate(documents) if d["rows"]["symc"].get(key)]
        axes.plot(*zip(*pairs), "o", color=color, label=f"symc, {words}")
        best = [(min(v), k) for k, d in enumerate(documents)
                if (v := [r[key] for n, r in d["rows"].items() if n != "symc" and r.get("ok") and r.get(key)
                          and PEERS[n].compiles])]
        axes.plot(*zip(*best), "x", color=color, label=f"the best compiler of others, {words}")
    axes.set_xscale("log")
    axes.set_yticks(range(len(documents)), [readme.name(d) for d in documents], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("seconds of CPU from the start of Python to the first result")
    axes.legend(fontsize=8, ncols=2, loc="lower left", bbox_to_anchor=(0, 1), frameon=False)


PLOTS: dict[str, Callable[[list[dict], Any], None]] = {"calls": calls, "ratios": ratios, "starts": starts}


def plot(name: str) -> str:
    """A plot in two colours of paper; the page shows the one that fits."""
    documents, shown = results(), []
    for kind, (ink, paper) in (("only-light", LIGHT), ("only-dark", DARK)):
        colours = dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), ink)
        with plt.rc_context({**colours, "figure.facecolor": paper, "axes.facecolor": paper, "svg.hashsalt": "symc"}):
            figure, axes = plt.subplots(figsize=(8, 0.24 * len(documents) + 1.2), layout="constrained")
            PLOTS[name](documents, axes)
            axes.grid(axis="x", alpha=0.25)
            file = io.BytesIO()
            figure.savefig(file, format="svg", metadata={"Date": None})
            plt.close(figure)
        MADE[f"{name}-{kind}.svg"] = file.getvalue()
        shown.append(show(f"{name}-{kind}.svg", PLOTS[name].__doc__ or "", kind))
    return "\n".join(shown)


def write_figures(app: Any, docname: str, text: list[str]) -> None:
    if docname == "gallery":
        text[0] = run_gallery(text[0])
    text[0] = re.sub(r"<!-- plot: (\w+) -->", lambda found: plot(found[1]), text[0])
    if "<!-- speed tables -->" in text[0]:
        text[0] = text[0].replace("<!-- speed tables -->", readme.published(ROOT / "README.md"))


def write_files(app: Any, error: Exception | None) -> None:
    folder = Path(app.outdir) / "_static" / "made"
    for name, data in MADE.items():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", write_figures)
    app.connect("build-finished", write_files)
    return {"parallel_read_safe": False}
