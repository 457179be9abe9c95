"""A fact about an op stands on its record: elsewhere nobody lists ops by name, and what records say is so."""

import ast
import importlib
from pathlib import Path

import numpy as np
import pytest

import symc
import symc.ir.ops
from symc.codegen.cpu.intrinsics import TABLE
from symc.ir.facts import Between, Monotone
from symc.ir.op import Op, all_ops, is_lossless, lookup
from symc.ir.ops.effect import quiet
from symc.runtime.compilers.llvm_primitives import PRIMITIVES
from symc.runtime.library import helper

ROOT = Path(symc.__file__).parent
#: How many names make a list.
LIST = 3
#: Where ops are listed by name: what a backend spells or calls, and the names that are NumPy's.
TABLES = ("ir/ops/", "codegen/cpu/", "codegen/cuda/", "runtime/", "export/", "numpy_api/", "special.py",
          "tensors/deferred.py", "compat/")
#: Where equations are: a rule names the ops that it is about.
EQUATIONS = ("opt/rules/",)
#: What is left, how often, and why it is no fact of a record.
LEFT = {
    "codegen/kernel/index_splitting.py": (5, "formulas of an index: what a comparison, a sum or a clamp of one is"),
    "dyn/var.py": (2, "Python's operators"),
    "ir/batch_control.py": (1, "a rule of each of these"),
    "ir/dim.py": (1, "functions of sizes, which have names of ops"),
    "ir/size_values.py": (2, "functions of sizes, which have names of ops"),
    "opt/facts/forms.py": (2, "formulas of an index"),
    "opt/facts/transfer/arithmetic.py": (1, "movements that keep all elements"),
    "opt/facts/transfer/structures.py": (4, "formulas of an index; triangles by comparisons"),
    "opt/fold.py": (1, "leaves"),
    "opt/matmul/chain_factors.py": (1, "factors of a product"),
    "opt/matmul/pack_sums.py": (1, "terms of a sum"),
    "testing/fuzz/front.py": (2, "what random programs choose from"),
    "testing/fuzz/sampled.py": (1, "ops that wait for someone, print, or have bodies"),
    "testing/fuzz/grower.py": (5, "what random programs choose from"),
    "testing/fuzz/moved.py": (1, "what random programs choose from"),
    "testing/fuzz/straight.py": (2, "what random programs choose from"),
    "testing/rule_forms.py": (1, "what comes near an equation, and is another"),
    "testing/rule_uses.py": (3, "how users write ops that have no function of their name"),
    "tools/debugging/perturb.py": (1, "movements that keep all elements"),
    "tools/lint.py": (1, "what cancels"),
}


def records() -> dict[str, Op]:
    """The records by the names that their modules give them."""
    modules = [importlib.import_module(f"symc.ir.ops.{p.stem}") for p in (ROOT / "ir/ops").glob("[a-z]*.py")]
    return {name: x for m in modules for name, x in vars(m).items() if isinstance(x, Op)}


NAMES, RECORDS = {op.name for op in all_ops() if op.facts.custom is None}, records()


def lists(text: str) -> list[str]:
    """The literal collections of op names, or of records, in the text of a module."""
    tree = ast.parse(text)
    imported = {a.asname or a.name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)
                and (n.module or "").startswith("symc.ir.ops") for a in n.names} & RECORDS.keys()
    out = []
    for n in ast.walk(tree):
        parts = n.elts if isinstance(n, ast.Set | ast.List | ast.Tuple) else n.keys if isinstance(n, ast.Dict) else []
        named = [p for p in parts if isinstance(p, ast.Constant) and isinstance(p.value, str) and p.value in NAMES
                 or isinstance(p, ast.Name) and p.id in imported]
        if len(named) >= LIST and 2 * len(named) > len(parts) and not isinstance(getattr(n, "ctx", None), ast.Store):
            out.append(f"line {n.lineno}: {ast.unparse(n)[:80]}")
    return out


def test_ops_are_listed_nowhere_else():
    wrong = []
    for path in sorted(ROOT.rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        found = [] if name.startswith((*TABLES, *EQUATIONS)) else lists(path.read_text())
        count, _ = LEFT.get(name, (0, ""))
        if len(found) != count:
            wrong.append(f"{name}: {len(found)} lists of ops, not {count}: ask the records (symc.ir.facts)\n  "
                         + "\n  ".join(found))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("text", [
    "MINE = {'exp', 'sin', 'cos'}", "MINE = ['exp', 'sin', 'cos', 'nothing']", "MINE = {'exp': 1, 'sin': 2, 'cos': 3}",
    "if v.op.name in ('exp', 'sin', 'cos'): pass",
    "from symc.ir.ops.math import exp, sin, cos\nMINE = (exp, sin, cos)",
])
def test_a_list_is_found(text):
    assert len(lists(text)) == 1


# --- what records say is so -------------------------------------------------------------------------------------------

REAL = [op for op in all_ops() if op.facts.arity and "f" in op.facts.kinds and op.facts.custom is None
        and op.samples is not None and not next(iter(op.samples()))[1]]
ids = {"ids": lambda op: op.name}


def of(op: Op, x: float) -> float:
    return float(op.reference(*[np.array(x)] * op.facts.arity))


@pytest.mark.parametrize("op", REAL, **ids)
def test_zero_and_one(op):
    assert not op.facts.keeps_zero or of(op, 0.0) == 0
    assert not op.facts.keeps_one or of(op, 1.0) == 1


@pytest.mark.parametrize("op", [op for op in all_ops() if op.facts.mirror], **ids)
def test_comparisons(op):
    x, y = map(np.ravel, np.meshgrid([-1, 0, 2], [-1, 0, 2]))
    assert (op.reference(x, y) == lookup(op.facts.mirror).reference(y, x)).all()


@pytest.mark.parametrize("op", [op for op in all_ops() if op.facts.symbol], **ids)
def test_symbols(op):
    x, y = np.array([1.5, 2.0, 3.0]), np.array([2.0, 2.0, 0.5])
    np.testing.assert_array_equal(op.reference(x, y), eval(f"x {op.facts.symbol} y"))


@pytest.mark.parametrize("op", [op for op in REAL if op.facts.values is not None], **ids)
def test_values(op):
    x = np.linspace(-20, 20, 4001)
    args = [x] if op.facts.arity == 1 else [x, x[::-1] + 0.5]
    got, values = op.reference(*args), op.facts.values
    got = got[np.isfinite(got)]
    if isinstance(values, Monotone):
        assert (np.diff(got) >= 0).all() and values.image[0] <= got.min() and got.max() <= values.image[1]
        inside = (x >= values.domain[0]) & (x <= values.domain[1])
        assert (np.isnan(op.reference(x)) == ~inside).all()
        with np.errstate(all="ignore"):
            own = np.array([values.f(number) for number in x[inside]], float)
        np.testing.assert_allclose(own, op.reference(x[inside]), rtol=1e-14)
    else:
        assert isinstance(values, Between) and values.low <= got.min() and got.max() <= values.high


@pytest.mark.parametrize("op", [op for op in REAL if is_lossless(op) and op.facts.result != "complex"], **ids)
def test_what_loses_nothing(op):
    """Wider numbers give the same."""
    x = np.array([-2.75, -1.0, -0.5, 0.0, 0.5, 1.5, 3.0], "f4")
    args = [np.tile(x, 7), np.repeat(x, 7)][: op.facts.arity]
    np.testing.assert_array_equal(op.reference(*args), op.reference(*[a.astype("f8") for a in args]))


def test_functions_are_in_the_library():
    for op in all_ops():
        if op.facts.kernel and op.facts.routine is None:
            assert op.name in TABLE or op.name in PRIMITIVES or helper(op.name), op.name


@pytest.mark.parametrize("op", [op for op in all_ops() if op.facts.part_of], **ids)
def test_parts(op):
    name, k = op.facts.part_of
    a = np.array([[2.0, 1.0], [1.0, 3.0]])
    attrs = {"lower": True} if name == "eigh" else {}
    whole = lookup(name).reference(a, **(attrs if name != "svd" else {"full": False}))
    np.testing.assert_allclose(np.sort(whole[k]), np.sort(op.reference(a, **attrs)), rtol=1e-12)


@pytest.mark.parametrize("op", [op for op in all_ops() if op.facts.same and op.samples], **ids)
def test_what_gives_its_first_operand(op):
    for arrays, attrs in op.samples():
        with quiet():
            np.testing.assert_array_equal(op.reference(*arrays, **attrs), arrays[0])
