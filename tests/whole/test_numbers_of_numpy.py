"""Numbers of NumPy, arrays and lists where examples of the reference give numbers and tuples of Python: one graph."""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

import symc as sc
from symc.tensors.pytree import flatten

EXTENSIONS = Path(__file__).resolve().parents[2] / "docs" / "_ext"
#: What may stand for a whole number that an example writes, and for a list or tuple of them.
SEQUENCES = ["np.array({})", "list({})", "tuple({})"]
KINDS = ["np.int64({})", "np.int16({})", "np.asarray({})", *SEQUENCES]


class Numbers(ast.NodeTransformer):
    """Replaces whole numbers in the arguments of calls, or sequences of them."""

    def __init__(self, text: str, sequences: bool = False):
        self.text, self.sequences, self.count = text, sequences, 0

    def visit_Call(self, node: ast.Call) -> ast.AST:
        node.args = [self._replaced(a) for a in node.args]
        for k in node.keywords:
            k.value = self._replaced(k.value)
        return node

    def _replaced(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Call):
            return self.visit_Call(node)  # type: ignore[return-value]
        whole = _is_whole(node)
        several = isinstance(node, ast.Tuple | ast.List) and bool(node.elts) and all(map(_is_whole, node.elts))
        if several if self.sequences else whole:
            self.count += 1
            return ast.parse(self.text.format(ast.unparse(node)), mode="eval").body
        if isinstance(node, ast.Tuple | ast.List):
            node.elts = [self._replaced(e) for e in node.elts]
        return node


def _is_whole(node: ast.expr) -> bool:
    node = node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else node
    return isinstance(node, ast.Constant) and type(node.value) is int


@pytest.fixture(scope="module")
def examples():
    """The examples that are one expression: by name, its text and its inputs."""
    sys.path.insert(0, str(EXTENSIONS))
    try:
        site = importlib.import_module("site_examples")
        scope, found = site.scope(), {}
        for name, e in site.everything().items():
            if e.call and not e.before:
                leaves = {n: eval(e.leaf(n)[0], {"sc": sc}) for n in e.values}
                found[name] = e.call, {**scope, **leaves, "nan": np.nan, "inf": np.inf}
        return found
    finally:
        sys.path.remove(str(EXTENSIONS))


def values(text: str, scope: dict) -> list:
    """The values of an expression, which are the same objects where they mean the same."""
    return [t.value for t in flatten(eval(text, dict(scope)))[0] if isinstance(t, sc.Tensor)]


@pytest.mark.parametrize("kind", KINDS)
def test_arguments_of_other_types_mean_the_same(examples, kind):
    tried = 0
    for name, (call, scope) in examples.items():
        other = Numbers(kind, sequences=kind in SEQUENCES)
        text = ast.unparse(other.visit(ast.parse(call, mode="eval")))
        if other.count:
            tried += 1
            assert values(text, scope) == values(call, scope), name
    assert tried > 30


def test_options_of_compile():
    x = sc.input("x", "float64", (2,))
    for one in (np.int64(1), np.uint8(1), np.array(1)):
        f = sc.compile(x + 1, [x], threads=one, max_bytes=np.int64(10**6) * one)
        np.testing.assert_array_equal(f(np.zeros(2)), np.ones(2))
    for none in (0, np.int64(0), True, 1.5, "2"):
        with pytest.raises(sc.InputError, match="threads must be a positive int"):
            sc.compile(x + 1, [x], threads=none)
    for none in (0, np.int64(-1), True, 1.5):
        with pytest.raises(sc.InputError, match="max_bytes must be a number of bytes"):
            sc.compile(x + 1, [x], max_bytes=none)
