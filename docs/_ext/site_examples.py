"""Examples of public names: read from ``examples/*.txt``, run, and printed as a session of Python.

A file is a table. ``== sc.linalg`` says whose names follow. Then there are three kinds of entry:

    det(A) ; A=[[1., 2.], [3., 4.]]             one expression, and the arrays of its inputs
    sin cos tan: {}(x) ; x=[0., 1.]             the same of several names ({.}: without the room)
    cross(x, y) ;; x=[1., 0., 0.], ...          the same, of inputs whose sizes are known
    PRNGKey(0) ;                                an expression without inputs, compiled and called
    finfo("float32").eps                        without a semicolon: shown as it is, not compiled
    scan:                                       statements, indented; the value of an expression is shown
        total = ...
    given:                                      what runs before each of the entries below, and is not shown
        import ...

A docstring with ``>>>`` in it needs no entry.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import re
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import symc as sc

FOLDER = Path(__file__).parent / "examples"
LEAVES = ("scalar", "vector", "matrix", "tensor3", "tensor4")


@dataclass
class Example:
    """Statements, and what they are an expression of: ``values`` by input's name if it is one expression."""

    code: str
    call: str = ""
    values: dict[str, Any] = field(default_factory=dict)
    known: bool = False
    before: str = ""

    def leaf(self, name: str) -> tuple[str, np.ndarray]:
        """The array of an input, and how such an input is declared."""
        array = np.asarray(self.values[name])
        dtype = "" if array.dtype == np.float64 else f', "{array.dtype}"'
        if self.known:
            return f'sc.input("{name}"{dtype}, shape={array.shape})', array
        return f'sc.{LEAVES[array.ndim]}("{name}"{dtype})', array


def table() -> dict[str, Example]:
    """The example of every name in the files."""
    found: dict[str, Example] = {}
    for path in sorted(FOLDER.glob("*.txt")):
        room, before = "sc", ""
        for entry in re.split(r"\n(?=\S)", path.read_text("utf-8").strip()):
            if entry.startswith("#"):
                continue
            if entry.startswith("== "):
                room = entry[3:].strip()
                continue
            if entry.startswith("given:"):
                before = textwrap.dedent(entry.partition("\n")[2])
                continue
            for name, example in _read(entry, room):
                example.before = before
                if name in found:
                    raise ValueError(f"{path.name}: a second example of {name}")
                found[name] = example
    return found


def _read(entry: str, room: str) -> list[tuple[str, Example]]:
    head, _, body = entry.partition(":\n")
    if body:
        code = textwrap.dedent(body).strip()
        return [(f"{room}.{n}", Example(_named(code, room, n))) for n in head.split()]
    several = re.match(r"([\w ]+): (.*)", entry, re.S)
    names = several[1].split() if several else [re.match(r"[\w.]+", entry)[0]]  # type: ignore[index]
    text = several[2] if several else "{}" + entry[len(names[0]):]
    call, semicolon, values = text.partition(" ;")
    known, values = values.startswith(";"), values.removeprefix(";")
    return [(f"{room}.{n}", _expression(_named(call, room, n), semicolon, values, known)) for n in names]


def _named(text: str, room: str, name: str) -> str:
    return text.replace("{}", f"{room}.{name}").replace("{.}", name)


def _expression(call: str, semicolon: str, values: str, known: bool = False) -> Example:
    if not semicolon:
        return Example(call)
    given = eval(f"dict({values})", {"np": np, "nan": np.nan, "inf": np.inf})
    example = Example("", call, given, known)
    shown = re.sub(r"\b(nan|inf)\b", r"np.\1", " ".join(values.split()))
    if given:
        leaves = ", ".join(example.leaf(n)[0] for n in given)
        example.code = f"{', '.join(given)} = {leaves}\n"
    example.code += f"sc.compile({call})({shown})"
    return example


def of_docstring(doc: str) -> Example | None:
    """The example in a docstring."""
    found = doctest.DocTestParser().get_examples(doc)
    return Example("".join(e.source for e in found).rstrip()) if found else None


def scope() -> dict[str, Any]:
    """The names that examples use without importing them."""
    import symc.dyn
    import symc.fold
    import symc.testing

    return {"np": np, "sc": sc, "symc": symc, "dy": symc.dyn, "fd": symc.fold, "__name__": "example"}


def run(code: str, given: str = "") -> str:
    """A session: every statement with its prompt, then what it printed and the value it has."""
    names = scope()
    exec(given, names)
    lines = code.splitlines()
    out = io.StringIO()
    before = sys.displayhook
    sys.displayhook = lambda value: None if value is None else print(_plain(value))
    try:
        with contextlib.redirect_stdout(out), np.printoptions(precision=4, suppress=True):
            end = 0
            for node in ast.parse(code).body:
                start, end = end, node.end_lineno or end
                text = [line for line in lines[start:end] if line.strip()]
                print("\n".join((">>> " if k == 0 else "... ") + line for k, line in enumerate(text)))
                # Lines of the examples are their own: a dump names them.
                exec(compile(ast.Interactive([node]), "example.py", "single"), names)
    finally:
        sys.displayhook = before
    return out.getvalue().rstrip()


def _plain(value: Any) -> str:
    """A value as it is printed: numbers without the wrapper of NumPy 2."""
    return re.sub(r"np\.(?:float|int|uint|bool|complex)\w*\(([^()]*)\)", r"\1", repr(value))


# --- families whose examples follow from their records ----------------------------------------------------------------

OPERANDS = {"n": "2", "k": "1", "m": "1", "x": "0.5", "y": "0.3", "p": "0.3", "q": "0.3", "z": "0.5"}
"""Operands of special functions by name, where one number is asked for; all others are 1.5."""
PARAMETERS = {"positive": "2.0", "any": "0.5", "probability": "0.3", "chance": "0.3", "count": "10.0",
              "nonnegative": "2.0"}
"""Parameters of distributions, by what is asked of them."""
OTHER = {"truncnorm": "-1.0, 2.0", "loguniform": "0.1, 3.0", "hypergeom": "20.0, 7.0, 12.0", "randint": "0.0, 6.0",
         "betabinom": "10.0, 0.6, 3.0"}


def derived() -> dict[str, Example]:
    """Examples of special functions and of distributions, by their operands' and parameters' names."""
    from symc.ir.ops.special import SEVERAL, TABLE

    found = {}
    for name in sc.special.__all__:
        if name in TABLE or name in SEVERAL:
            *first, last = TABLE[name] if name in TABLE else SEVERAL[name][1]
            given = ", ".join([*(OPERANDS.get(n, "1.5") for n in first), last])
            found[f"sc.special.{name}"] = _expression(f"sc.special.{name}({given})", ";", f"{last}=[0.25, 0.75]")
    for name, d in sc.stats.DISTRIBUTIONS.items():
        if isinstance(d, sc.stats.Multivariate):
            continue
        given = OTHER.get(name) or ", ".join(PARAMETERS[kind] for kind in d.shapes.values())
        function, x, values = (
            ("logpmf", "k", "k=[0., 1., 2.]") if isinstance(d, sc.stats.Discrete) else ("logpdf", "x", "x=[0.25, 0.75]")
        )
        call = f"sc.stats.{name}.{function}({', '.join([x, given] if given else [x])})"
        found[f"sc.stats.{name}"] = _expression(call, ";", values)
    return found


def everything() -> dict[str, Example]:
    """All examples that are not in docstrings."""
    return {**derived(), **table()}
