"""The picture of the README: a program, what it becomes and what runs, as one SVG for light and one for dark paper.

``python docs/_ext/stages_picture.py`` writes docs/pictures; a test asks whether they are current.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from pathlib import Path

import numpy as np

import symc as sc

FOLDER = Path(__file__).parents[1] / "pictures"
PROGRAM = """\
x = sc.input("x", shape=("n", 3))
y = sc.input("y", shape=("n",))
w = sc.shared(np.zeros(3), "w")

z = x @ w
p = sc.log(1 + sc.exp(z))
loss = sc.sum(p - y * z)
g = sc.grad(loss, w)

step = sc.compile(loss, [x, y],
    updates={w: w - 0.1 * g})
"""
PAPERS = {
    "light": {"paper": "#ffffff", "panel": "#f6f8fa", "edge": "#d0d7de", "ink": "#1f2328", "weak": "#59636e",
              "dot": "#0969da", "fused": "#bc4c00", "gemm": "#1a7f37"},
    "dark": {"paper": "#0d1117", "panel": "#161b22", "edge": "#3d444d", "ink": "#e6edf3", "weak": "#9198a1",
             "dot": "#58a6ff", "fused": "#ffa657", "gemm": "#56d364"},
}  # fmt: skip
Line = tuple[str, str]
"""Text, and the step that it belongs to."""
WIDTH, ROW, TOP, LEFT = 6.65, 15.5, 58, 14


def panels() -> Iterator[tuple[str, str, list[Line]]]:
    """Titles, subtitles and lines."""
    names = {"sc": sc, "np": np}
    exec(PROGRAM, names)
    step = names["step"]
    parts = {"z =": "dot", "p =": "fused", "loss =": "fused", "g =": "gemm", "    updates": "gemm"}
    colored = [(line, next((to for start, to in parts.items() if line.startswith(start)), ""))
               for line in PROGRAM.splitlines()]
    yield "You write", "an expression, its gradient, an update", colored
    yield "It becomes", "optimized IR, stable and fused", _colored(_plain(str(step)), ("dot", "fused", "gemm"))
    steps = [line for line in _plain(step.plan) if "<-" in line]
    yield "It runs", "two calls of BLAS, one native kernel", [*_runs(steps, step.source)]


def _plain(text: str) -> list[str]:
    """Lines without places and digests."""
    text = re.sub(r" *//.*|_[0-9a-f]{8}\b", "", text)
    return [line for line in text.splitlines() if line.strip()]


def _colored(lines: list[str], steps: tuple[str, ...]) -> list[Line]:
    """Lines, each with the step whose block it is in."""
    out, now = [], ""
    for line in lines:
        found = next((s for s in steps if f" = {s} " in line), None)
        inside = line.startswith("    ") or line.strip() in ("}",) or line.startswith("  ^")
        now = found or (now if inside and line != "}" else "")
        out.append((re.sub(r" \{alpha.*\}", "", line), now))
    return out


def _runs(steps: list[str], source: str) -> Iterator[Line]:
    """The steps of the plan; below the launch, the loop of its kernel."""
    for line, step in zip(steps, ("dot", "fused", "gemm"), strict=True):
        text = re.sub(r"^ *\[0\] | \{.*\}", "", line).replace("sigmoid_softplus_sum", "kernel")
        yield text, step
        if step == "fused":
            body = source.split("for i3 in range", 1)[1].split("s0 = s0", 1)[0].splitlines()
            yield "    for i in range(n):", step
            yield from (("      " + line.strip().replace("i3", "i"), step) for line in body[1:] if line.strip())


def draw(colors: dict[str, str]) -> str:
    """The SVG in one set of colours."""
    found = [*panels()]
    widths = [max(len(text) for text, _ in lines) * WIDTH + 2 * LEFT for _, _, lines in found]
    height = max(len(lines) for _, _, lines in found) * ROW + TOP + 16
    x, out = 8.0, []
    for (title, below, lines), width in zip(found, widths, strict=True):
        out.append(f'<rect x="{x}" y="8" width="{width:.0f}" height="{height:.0f}" rx="8" '
                   f'fill="{colors["panel"]}" stroke="{colors["edge"]}"/>')
        out.append(f'<text x="{x + LEFT}" y="31" class="title">{title}</text>'
                   f'<text x="{x + LEFT}" y="48" class="below">{below}</text>')
        for k, (text, step) in enumerate(lines):
            color, y = colors[step or "ink"], TOP + 14 + k * ROW
            if step:
                out.append(f'<rect x="{x + 5}" y="{y - 11}" width="3" height="{ROW}" fill="{color}"/>')
            out.append(f'<text x="{x + LEFT}" y="{y}" fill="{color}" xml:space="preserve">{escape(text)}</text>')
        x += width + 30
        if width is not widths[-1]:
            out.append(f'<path d="M{x - 24} {height / 2} h14 m-6 -6 l6 6 l-6 6" fill="none" '
                       f'stroke="{colors["weak"]}" stroke-width="2"/>')
    width, whole = x - 22, height + 16
    mono = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
    style = (f"text {{ font: 11px {mono}; }} .title {{ font: 600 15px sans-serif; fill: {colors['ink']}; }} "
             f".below {{ font: 12px sans-serif; fill: {colors['weak']}; }}")
    body = "\n".join(out)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {whole:.0f}" width="{width:.0f}" '
            f'height="{whole:.0f}">\n<style>{style}</style>\n'
            f'<rect width="100%" height="100%" rx="10" fill="{colors["paper"]}"/>\n{body}\n</svg>\n')


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, colors in PAPERS.items():
        (FOLDER / f"stages-{name}.svg").write_text(draw(colors), "utf-8")
