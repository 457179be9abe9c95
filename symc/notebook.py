"""Displays in notebooks: tables and folded texts that read well on light and dark pages, and never fail.

What shows itself derives from ``Shown`` and says how in ``_html_``; its plain ``repr`` stays what it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

#: Lines of a text that are shown at once, lines that are there when it is unfolded, and characters of a line.
OPEN, MOST, WIDEST = 30, 600, 400
#: Rows of a table, and characters of a cell.
ROWS, CELL = 60, 160
_MONO = "font-family:ui-monospace,monospace;font-size:12px;line-height:1.45"
_RULE = "border-bottom:1px solid rgba(128,128,128,.3)"
_COLOURS = {"+": "rgba(34,197,94,.22)", "-": "rgba(239,68,68,.22)"}


class Shown:
    """Mixin of what shows itself in notebooks."""

    __slots__ = ()

    def _html_(self) -> str:
        """HTML of the value; by default its text."""
        return text(str(self))

    def _repr_html_(self) -> str:
        try:
            return self._html_()
        except Exception:  # a display must not hide the result that it is of
            return text(object.__repr__(self))  # what it is called may be what fails

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}


class Listing(Shown, str):
    """Text of many lines, such as a plan: a string in all but its display. ``caption`` says what it is."""

    caption = ""

    @staticmethod
    def of(content: str, title: str) -> Listing:
        out = Listing(content)
        out.caption = title
        return out

    def _html_(self) -> str:
        return text(self, self.caption)


class Records(Shown, list):
    """A list of records, shown as a table of some of their attributes, above their sources."""

    def _html_(self) -> str:
        if not self or not hasattr(self[0], "launches"):
            return text(repr(list(self)))
        head = table(["kernel", "launches", "by", "lines"],
                     [(k.name, k.launches, k.backend, ", ".join(k.lines)) for k in self])
        return head + "".join(text(k.source, k.name, fold=True) for k in self[:ROWS])


def progress_bar(**options: Any) -> Any:
    """A bar of tqdm's, where somebody looks on (a terminal, a notebook) and tqdm is installed; else None."""
    import sys

    in_notebook = "ipykernel" in sys.modules
    if not in_notebook and not sys.stderr.isatty():
        return None
    try:
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # notebooks without widgets: the bar is text then
            from tqdm.auto import tqdm

            return tqdm(leave=False, **options)
    except ImportError:
        return None


class CompileProgress:
    """A bar for what takes long: called at the start of every phase, it is there from ``AFTER`` seconds on."""

    AFTER = 2.0

    def __init__(self, name: str):
        from time import perf_counter

        self._clock, self._bar, self._name = perf_counter, None, name
        self._show = perf_counter() + self.AFTER

    def __call__(self, phase: str, what: str) -> None:
        if self._bar is None and self._clock() > self._show:
            self._bar = progress_bar(bar_format="{desc} [{elapsed}]", total=None)
            self._show = float("inf")  # it is asked for once
        if self._bar is not None:
            self._bar.set_description_str(f"compiling {self._name}: {phase} {what}".rstrip()[:100], refresh=False)
            self._bar.update()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


def safe(content: Any, most: int = CELL) -> str:
    """The text of anything, with nothing in it that HTML reads, and not too long."""
    from html import escape

    said = str(content)
    return escape(said if len(said) <= most else said[: most - 1] + "…")


def text(content: str, title: str = "", fold: bool = False, coloured: bool = False) -> str:
    """Lines of text. Many are folded, and of very many the first are there, with a note. ``coloured``: lines that begin
    with + or -."""
    lines = str(content).splitlines()
    body = "\n".join(_line(x, coloured) for x in lines[:MOST])
    if len(lines) > MOST:
        body += f"\n… {len(lines) - MOST:,} more lines: print() shows all"
    pre = f'<pre style="{_MONO};margin:0;white-space:pre;overflow-x:auto">{body}</pre>'
    if len(lines) <= OPEN and not fold:
        return (f"<div><b>{safe(title)}</b></div>" if title else "") + pre
    named = safe(title or (lines[0] if lines else ""))
    return f"<details><summary><b>{named}</b> ({len(lines):,} lines)</summary>{pre}</details>"


def _line(line: str, coloured: bool) -> str:
    said = safe(line, WIDEST)
    colour = _COLOURS.get(line[:1]) if coloured else None
    return f'<span style="background:{colour}">{said}</span>' if colour else said


def table(titles: Sequence[str], rows: Iterable[Sequence[Any]], left: Sequence[bool] | None = None,
          caption: str = "") -> str:
    """A table; more rows than some are counted. ``left``: which columns are of words, not numbers."""
    every = list(rows)
    align = [f"text-align:{'left' if left is None or x else 'right'}" for x in left or [True] * len(titles)]
    style = f"padding:1px 10px 1px 0;background:none;border:0;{_RULE}"

    def row(tag: str, cells: Iterable[Any]) -> str:
        found = [f'<{tag} style="{style};{a}">{safe(c)}</{tag}>' for c, a in zip(cells, align, strict=False)]
        return f"<tr>{''.join(found)}</tr>"

    head = row("th", titles) if any(titles) else ""
    more = f'<div style="opacity:.7">… {len(every) - ROWS:,} more rows: print() shows all</div>'
    return (f"<div>{safe(caption, WIDEST)}</div>" if caption else "") + \
        f'<table style="{_MONO};border-collapse:collapse;margin:0">{head}' \
        f"{''.join(row('td', r) for r in every[:ROWS])}</table>{more * (len(every) > ROWS)}"


def of_columns(columns: Sequence[Any]) -> str:
    """A table of ``symc.tools.profiling.tables.Column``."""
    return table([c.title for c in columns], zip(*[c.cells for c in columns], strict=True),
                 [c.left for c in columns])
