"""The reference: an entry for each public name, made when the site is built.

An entry has the signature, the docstring, the types of operands and results, what is refused, an example with what it
printed, and the source. Types and refusals are found by building the example's expression from operands of symbolic
sizes, of complex numbers and of sizes that do not fit; nothing is written by hand but the examples.
"""

from __future__ import annotations

import contextlib
import html
import inspect
import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import site_examples
import site_public
from site_examples import Example
from sphinx.util import logging

import symc as sc
from symc.ir.op import all_ops

ROOT = Path(__file__).parents[2]
SIZES = "n m k l p q r s".split()
OPS = {op.name: op for op in all_ops()}
LOG = logging.getLogger(__name__)
FLAGS = inspect.Parameter


@cache
def examples() -> dict[str, Example]:
    return site_examples.everything()


@cache
def session(code: str, before: str) -> str:
    """The output of an example; where it writes files, in a folder of its own."""
    if "emulated_cuda" in code and shutil.which("g++") is None:  # which compiles the kernels of the emulated device
        return code
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.chdir(folder)
        try:
            return site_examples.run(code, before)
        except Exception as error:  # the site is not built with an example that fails
            LOG.warning("%s\n%s: %s", code, type(error).__name__, error)
            return code
        finally:
            os.chdir(here)


def example_of(full: str, item: Any) -> Example | None:
    return examples().get(full) or site_examples.of_docstring(inspect.getdoc(item) or "")


# --- an entry ---------------------------------------------------------------------------------------------------------


def entry(room: str, group: list[str]) -> str:
    """The Markdown of one thing under its names."""
    item = site_public.rooms()[room][group[0]]
    full = f"{room}.{group[0]}"
    kind = "class" if isinstance(item, type) else "function" if callable(item) or _is_method(item) else "data"
    others = [f'<span id="{room}.{n}"></span>`{room}.{n}`' for n in group[1:]]
    rows = [f"**Also** {', '.join(others)}"] if others else []
    example = example_of(full, item)
    if example is not None and example.call and example.values:
        rows += [f"**Types** {t}" for t in types(example)] + [f"**Refused** {r}" for r in refused(example)]
    shown = source(item)
    rows += [f"**Source** {shown}"] if shown else []
    lines = [f"::::{{py:{kind}}} {full}{signature(item)}", "", prose(item), ""]
    if example is not None:
        lines += ["```pycon", session(example.code, example.before), "```", ""]
    lines += [f"```{{rst-class}} facts\n```\n\n{''.join(f'* {r}{chr(10)}' for r in rows)}"] if rows else []
    return "\n".join([*lines, "::::", ""])


def _is_method(item: Any) -> bool:
    return isinstance(item, staticmethod | classmethod)


def signature(item: Any) -> str:
    """Parameters and defaults, without annotations."""
    if isinstance(item, property) or not (callable(item) or _is_method(item)):
        return ""
    try:
        found = inspect.signature(getattr(item, "__func__", item))
    except (TypeError, ValueError):
        return ""
    if isinstance(item, sc.stats.Distribution | sc.stats.Multivariate):
        return f"({item.signature()})"
    twin = getattr(np, getattr(item, "__name__", ""), None)
    if isinstance(twin, np.ufunc):
        return f"({', '.join(['x', 'y'][:twin.nin])}, /, *, dtype=None)"
    out = []
    for p in found.parameters.values():
        if p.name == "self":
            continue
        default = p.default
        if default is not FLAGS.empty and not isinstance(default, int | float | str | tuple | None):
            default = ...
        out.append(p.replace(annotation=FLAGS.empty, default=default))
    text = str(found.replace(parameters=out, return_annotation=inspect.Signature.empty))
    return text.replace("Ellipsis", "...")


def prose(item: Any) -> str:
    """A docstring as Markdown: code stays code, and nothing else is markup."""
    owner = item.fget if isinstance(item, property) else getattr(item, "__func__", item)
    text = inspect.getdoc(owner) if callable(owner) else ""
    if isinstance(owner, sc.stats.Distribution | sc.stats.Multivariate):
        text = vars(owner).get("doc") or text
    if text and text.startswith("NumPy's ``") and item.__name__ in OPS:
        text += f"\n\n{OPS[item.__name__].doc}"
    paragraphs = re.split(r"\n\s*\n", (text or "").split(">>>")[0].strip())
    return "\n\n".join(_block(p) for p in paragraphs)


def _block(paragraph: str) -> str:
    if paragraph.startswith("    "):
        return f"```text\n{inspect.cleandoc(paragraph)}\n```"
    if re.match(r"[*-] ", paragraph):
        return "\n".join("* " + _block(item) for item in re.split(r"(?:^|\n)[*-] ", paragraph)[1:])
    parts = re.split(r"(``.*?``)", " ".join(paragraph.split()))
    return "".join(p if p.startswith("``") else re.sub(r"([\\`*_{}\[\]<>#|$~])", r"\\\1", p) for p in parts)


# --- types and refusals -----------------------------------------------------------------------------------------------


def build(example: Example, shapes: dict[str, tuple], dtypes: dict[str, Any]) -> Any:
    """The example's expression, of inputs with these shapes and dtypes."""
    leaves = {n: sc.input(n, dtypes[n], shape=shapes[n]) for n in example.values}
    return eval(example.call, {**site_examples.scope(), **leaves})


def _given(example: Example) -> tuple[dict[str, tuple], dict[str, Any]]:
    arrays = {n: example.leaf(n)[1] for n in example.values}
    return {n: a.shape for n, a in arrays.items()}, {n: a.dtype for n, a in arrays.items()}


def types(example: Example) -> Iterator[str]:
    """The types of operands and results, with one letter for all sizes that are equal in the example."""
    shapes, dtypes = _given(example)
    letters: dict[int, str] = {}
    for shape in shapes.values():
        for size in shape:
            if size != 1 and len(letters) < len(SIZES):
                letters.setdefault(size, SIZES[len(letters)])
    named = {n: tuple(letters.get(size, size) for size in shape) for n, shape in shapes.items()}
    for trial in (named, shapes):
        with contextlib.suppress(Exception):
            result = _types_of(build(example, trial, dtypes))
            if len(result) > 60 and trial is named:  # formulas of sizes
                continue
            operands = ", ".join(f"`{n}: {sc.input(n, dtypes[n], shape=trial[n]).type}`" for n in trial)
            yield f"{operands} → {result}"
            return


def _types_of(result: Any) -> str:
    if isinstance(result, list | tuple):
        return ", ".join(map(_types_of, result))
    return f"`{re.sub(r'[?]', '', str(result.type))}`"


def refused(example: Example) -> Iterator[str]:
    """Errors that operands of other dtypes and sizes meet, each kind once."""
    shapes, dtypes = _given(example)
    trials = []
    for n, dtype in dtypes.items():
        other = "float64" if dtype.kind in "iub" else "complex128" if dtype.kind == "f" else None
        trials += [(f"`{n}` of {other}", shapes, {**dtypes, n: other})] if other else []
        if shapes[n]:
            shape = tuple(s + 1 + k for k, s in enumerate(shapes[n]))
            trials.append((f"`{n}` of shape {shape}", {**shapes, n: shape}, dtypes))
    seen = set()
    for what, new_shapes, new_dtypes in trials:
        try:
            build(example, new_shapes, new_dtypes)
        except sc.InternalError:
            raise
        except (sc.SymcError, TypeError, ValueError) as error:
            message = str(getattr(error, "what", error)).splitlines()[0]
            if type(error) not in seen:
                seen.add(type(error))
                yield f"{what}: `{type(error).__name__}`: {_block(message)}"


# --- sources ----------------------------------------------------------------------------------------------------------

USED: set[str] = set()
"""The files that entries lead to."""


def source(item: Any) -> str:
    """A link to the lines that make a thing."""
    owner = item.fget if isinstance(item, property) else getattr(item, "__func__", item)
    owner = inspect.unwrap(owner) if isinstance(owner, type) or inspect.isroutine(owner) else type(owner)
    try:
        file, line = Path(inspect.getsourcefile(owner) or ""), inspect.getsourcelines(owner)[1]
    except (TypeError, OSError):
        return ""
    if not file.is_relative_to(ROOT / "symc"):
        return ""
    path = file.relative_to(ROOT).as_posix()
    USED.add(path)
    return f'<a href="../source/{path.removesuffix(".py")}.html#L-{line}">{html.escape(path)}, line {line}</a>'


def write_sources(app: Any, error: Exception | None) -> None:
    """A page of highlighted code for each file that is led to: complete in itself, since trees of contents are slow."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    for path in sorted(USED):
        form = HtmlFormatter(full=True, title=path, linenos="inline", lineanchors="L", anchorlinenos=True)
        page = Path(app.outdir) / "source" / path.replace(".py", ".html")
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(highlight((ROOT / path).read_text("utf-8"), PythonLexer(), form), "utf-8")


def write_entries(app: Any, docname: str, text: list[str]) -> None:
    """Put entries in place of the markers of a page."""

    def entries(marker: re.Match) -> str:
        room, chosen = marker[1], site_public.names(marker[1], marker[2])
        return "\n".join(entry(room, group) for group in site_public.aliases(room, chosen))

    text[0] = site_public.MARKER.sub(entries, text[0])


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", write_entries)
    app.connect("build-finished", write_sources)
    return {"parallel_read_safe": False}
