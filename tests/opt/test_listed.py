"""What is known of rules and passes before they are read is what they say, and little is read for a small function."""

from __future__ import annotations

import marshal
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import symc.opt as opt
from symc.ir.function import Function
from symc.ir.parse import parse_module
from symc.opt import all_passes
from symc.opt.engine import listed
from symc.opt.engine.declare import _canonical, default_dtype
from symc.opt.engine.examples import variables_of_rule
from symc.opt.engine.passes import words_of
from symc.opt.engine.pattern import compile_pattern
from symc.opt.engine.pipelines import DEFAULT
from symc.testing.filecheck import cases

PRINT = "import sys; from symc.opt import all_rules; " \
        "print([(r.name, r.module, r.roots, r.weight, sorted(r.needs), repr(r.pattern)) for r in {}])"


def python(code: str, folder: object = None) -> str:
    environment = {**os.environ, "SYMC_CACHE_DIR": "off"} | ({"PYTHONPYCACHEPREFIX": str(folder)} if folder else {})
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert not done.returncode, done.stderr
    return done.stdout


#: What has been read to import the optimizer, and then the passes.
READ = ("import sys; from symc.opt import DEFAULT, all_passes, all_rules; "
        "from symc.opt.engine.pass_registry import rows; "
        "print(*[f'symc.opt.{m}' in sys.modules for m in ('rules.hyperbolic', 'loops.sink')]); "
        "print(DEFAULT, sorted(map(str, rows())), [(p.name, p.records is None) for p in all_passes()]); ")


@pytest.mark.long
def test_rules_and_passes_are_the_same_however_they_are_read(tmp_path: Path) -> None:
    """In two processes: the first reads all, of which it leaves a table to the second."""
    at_once = python(READ + PRINT.format("all_rules()"), tmp_path)
    assert len(list(tmp_path.rglob("*.rules*"))) == 1
    backwards = python(READ + PRINT.format("[(r.pattern, r)[1] for r in all_rules()[::-1]][::-1]"), tmp_path)
    assert backwards.startswith("False False\n") and at_once.split()[1] == "True"
    assert at_once.partition("\n")[2] == backwards.partition("\n")[2]


@pytest.mark.parametrize("damage", ["none", "missing", "cut", "emptied", "other", "older"])
def test_a_table_that_is_not_of_the_files_is_not_read(tmp_path: Path, monkeypatch: Any, damage: str) -> None:
    monkeypatch.setattr(listed, "place", lambda: str(tmp_path / "table"))
    stamp = listed._stamp()
    listed._keep(stamp)
    (table,) = tmp_path.iterdir()
    whole = table.read_bytes()
    changed = tuple((name, size, time - (k == 5)) for k, (name, size, time) in enumerate(stamp))
    table.write_bytes({"cut": whole[:-100], "emptied": b"", "other": marshal.dumps(5),
                       "older": marshal.dumps((changed, []))}.get(damage, whole))
    if damage == "missing":
        table.unlink()
    assert (listed._kept(stamp) is not None) == (damage == "none")


def test_a_pattern_does_not_depend_on_the_rules_before_it() -> None:
    """Made again, after all others, each equation has its operands in the order they have in its rule."""
    rules = [r for r in opt.all_rules() if r.by_pattern and r.family != "canonicalize"]
    equations = [r for r in rules if r.build.__name__ == r.name]
    for r in equations:
        of_rule = {k: r.dtypes.get(n, default_dtype(r.kinds)) for k, n in enumerate(r.variables)}
        variables = variables_of_rule(len(r.variables), of_rule)
        again = compile_pattern(_canonical(r.build(*variables)[0]), variables, terms=not r.exact)
        assert repr(again) == repr(r.pattern), r
    assert len(equations) > 100


@pytest.mark.long
def test_what_a_first_compile_imports() -> None:
    """Of the optimizer what the function has work for, and no rule whose ops nobody has met. Lines are those beside
    ``import symc``, which has the records of all ops and all public names."""
    code = ("import numpy as np, symc as sc, sys; print(*[m for m in sys.modules if m.startswith('symc.')]); "
            "x, y = (sc.input(n, 'float64', shape=('n',)) for n in 'xy'); "
            "f = sc.compile(sc.sum(x * y + 1), [x, y]); f(np.ones(3), np.ones(3)); "
            "print(*[m for m in sys.modules if m.startswith('symc.')])")
    python("import symc.opt")  # it makes the table
    before, loaded = (set(line.split()) for line in python(code).splitlines())
    names = {m for m in loaded if m.startswith("symc.opt")}
    assert "symc.opt.fusion.fuse" in names and "symc.opt.rules.algebra" in names
    assert not names & {f"symc.opt.{m}" for m in (
        "rules.hyperbolic", "rules.error_function", "rules.exponentials", "rules.indexing", "rules.factors",
        "rules.structure", "rules.softmax", "rules.logsumexp", "loops.unroll", "matmul.pack", "matmul.chains",
        "matmul.blas", "cache_from_state", "inline",
        "why.explain", "why.catalogue")}
    assert not loaded & {f"symc.{m}" for m in (
        "grad", "tools", "codegen.plan.recompute", "codegen.plan.check_plan", "codegen.plan.text", "runtime.cpu.lapack",
        "runtime.cpu.products", "runtime.compilers.numba_compile")}
    assert len(names) < 48 and _lines(loaded - before) < 24_900


def _lines(modules: set[str]) -> int:
    """The lines of modules of symc, but of those that write native code, which a machine reads once."""
    root = Path(opt.__file__).parents[2]
    bases = [root / m.replace(".", "/") for m in modules if not m.endswith("_ir") and ".assembly" not in m]
    files = [b / "__init__.py" if b.is_dir() else b.with_suffix(".py") for b in bases]
    return sum(len(f.read_text(encoding="utf-8").splitlines()) for f in files)


def functions() -> list[Function]:
    files = sorted(Path(__file__).parent.glob("*.ir"))
    texts = [c.text for path in files for c in cases(path.read_text(encoding="utf-8")) if not c.errors]
    return [parse_module(text)[-1] for text in texts]


@pytest.mark.parametrize("p", [p for p in all_passes() if p.on and p.name in DEFAULT.split(",")], ids=lambda p: p.name)
def test_passes_do_nothing_where_they_are_not_run(p: opt.Pass) -> None:
    from symc.opt.engine.passes import _run
    from symc.opt.engine.pipelines import Selection
    from symc.opt.engine.provenance import Provenance
    from symc.opt.facts.analysis import Analysis

    passed = 0
    for f in functions():
        if words_of(f).isdisjoint(p.on):
            passed += 1
            assert _run(p, f, Selection((p.name,)), Provenance(), True, {}, Analysis())[0].body is f.body
    assert passed > 20
