"""A module for Pythran made from a function of an array namespace, as `benchmarks/everyday` has them.

The namespace argument goes, its attributes are NumPy's, annotations and documentation go; functions and constants of
the function's module come along. A counted loop is a loop of Python.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from benchmarks.workload import Array

LONGEST = 90
"""Seconds to wait for Pythran, which takes minutes for some programs."""
HELPERS = {
    "repeat": """\
def repeat(count, step, state):
    for i in range(count):
        state = step(i, state)
    return state
""",
    "counts": """\
def counts(x, length, weights=None):
    return np.bincount(x, weights, length)
""",
    "running": None,
}
"""What `benchmarks.everyday` says by namespace, for Pythran; None has no counterpart."""


def compiled(function: Callable[..., Any], arrays: Sequence[Array]) -> Callable[..., Any]:
    """``function(np, *arrays)`` compiled for these dtypes and ranks. Raises what Pythran said if it could not."""
    folder = Path(tempfile.mkdtemp(prefix="pythran-"))
    types = ", ".join(f"{a.dtype}[{','.join(':' * a.ndim)}]" if a.ndim else str(a.dtype) for a in arrays)
    text = f"#pythran export {function.__name__}({types})\nimport math\nimport numpy as np\n\n{source(function)}"
    (folder / "made.py").write_text(text)
    command = [str(Path(sys.executable).with_name("pythran")), "-O3", "-march=native", "-DUSE_XSIMD", "made.py",
               "-o", "made.so"]  # fmt: skip
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LONGEST)
    if run.returncode:
        raise NotImplementedError("pythran: " + " ".join((run.stdout + run.stderr).split())[-300:])
    spec = importlib.util.spec_from_file_location("made", folder / "made.so")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, function.__name__)


def source(function: Callable[..., Any]) -> str:
    """Text of the function after that of all it calls, in the order of need."""
    texts: dict[str, str] = {}
    _collect(function, texts)
    return "\n".join(texts.values())


def _collect(function: Callable[..., Any], texts: dict[str, str]) -> None:
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(tree, ast.FunctionDef)
    tree = _Plain().visit(tree)
    for name in sorted({n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} & set(function.__globals__)):
        value = function.__globals__[name]
        if name in texts or name in ("np", "math", "Any") or value is function:
            continue
        if name in HELPERS:
            if HELPERS[name] is None:
                raise NotImplementedError(f"pythran: {name}")
            texts[name] = str(HELPERS[name])
        elif isinstance(value, FunctionType):
            _collect(value, texts)
        elif isinstance(value, int | float | str | tuple):
            texts[name] = f"{name} = {value!r}\n"
        elif isinstance(value, np.ndarray):
            texts[name] = f"{name} = np.array({value.tolist()!r})\n"
    texts[function.__name__] = ast.unparse(tree) + "\n"


class _Plain(ast.NodeTransformer):
    """Without the namespace, annotations, decorators and documentation."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.args.args = [ast.arg(a.arg) for a in node.args.args if a.arg != "xp"]
        node.returns, node.decorator_list = None, []
        if ast.get_docstring(node) is not None:
            del node.body[0]
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        node.args = [a for a in node.args if not (isinstance(a, ast.Name) and a.id == "xp")]
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name("np", node.ctx) if node.id == "xp" else node
