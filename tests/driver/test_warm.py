"""Functions that another process compiled: what is found on disk runs alike, and what is not is compiled as ever."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symc as sc
from symc.driver import stages, warm
from symc.opt.engine.rule import Rule, register, temporary_rules
from symc.runtime.cache import object_cache
from symc.runtime.cache.machine_code import Symbol
from symc.runtime.cpu.blas_library import library
from symc.runtime.cpu.symbols import find
from symc.runtime.with_prologue import WithPrologue
from tests.driver.equal_programs import is_warm


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own."""
    monkeypatch.setenv(object_cache.FOLDER, str(tmp_path / "cache"))
    return tmp_path / "cache"


def vector(name: str, dtype: str = "float64") -> Any:
    """An input whose size has a name."""
    return sc.input(name, dtype, shape=(f"n_{name}",))


def affine() -> tuple[Any, list[Any]]:
    x, y = (sc.input(name, "float64", shape=("n",)) for name in "xy")
    return sc.sum(sc.exp(x) * y + 1), [x, y]


def twice(make: Any, *calls: tuple, **options: Any) -> tuple[Any, Any]:
    """A function compiled and called, and once more, with the same results."""
    found = []
    for _ in range(2):
        outputs, inputs = make()
        f = sc.compile(outputs, inputs, **options)
        found.append((f, [f(*args) for args in calls]))
    (cold, a), (again, b) = found
    assert not is_warm(cold) and is_warm(again)
    for p, q in zip(a, b, strict=True):
        for u, v in zip(p, q, strict=True) if isinstance(p, tuple) else [(p, q)]:
            np.testing.assert_array_equal(u, v)
    return cold, again


def test_it_runs_without_optimizer_and_planner(monkeypatch: pytest.MonkeyPatch) -> None:
    outputs, inputs = affine()
    want = sc.compile(outputs, inputs)(np.arange(4.0), np.ones(4))
    monkeypatch.setattr(stages, "optimize", None)  # it is not asked
    f = sc.compile(outputs, inputs)
    assert is_warm(f) and f.compile_count == 0
    for _ in range(4):  # by the native entry too
        assert f(np.arange(4.0), np.ones(4)) == want
    assert f([0, 1, 2, 3], np.ones(4, np.float32)) == want


def test_what_is_on_disk_serves_all_sizes() -> None:
    _, f = twice(affine, (np.ones(3), np.ones(3)))
    for n in (2, 5, 0, 1, 1000, 2):
        assert f(np.zeros(n), np.ones(n)) == 2 * n and not f._compilation.made


def test_many_sizes_leave_the_disk_as_it_is(place: Path) -> None:
    def content() -> dict[str, int]:
        return {p.name: p.stat().st_size for p in place.rglob("*") if p.is_file()}

    f = sc.compile(*affine())
    f(np.zeros(1), np.ones(1))
    before = content()
    assert before
    for n in range(2, 40):
        f(np.zeros(n), np.ones(n))
    assert content() == before


def test_everything_that_can_be_asked_is_the_same() -> None:
    x = sc.matrix("x")
    cold, f = twice(lambda: (sc.softmax(x @ x.T, axis=1), [x]), (np.eye(3),))
    assert f.dump() == cold.dump() and f.plan == cold.plan and f.source == cold.source
    assert f.stages == cold.stages and f.explain() == cold.explain()
    assert [k.name for k in f.kernels] == [k.name for k in cold.kernels]
    assert f.memory(np.eye(3)) == cold.memory(np.eye(3)) and f.calls == cold.calls
    assert [r[0] for r in f.profile(np.eye(3))] == [r[0] for r in cold.profile(np.eye(3))]
    assert repr(f) == repr(cold)


def test_states_are_updated() -> None:
    results = []
    for _ in range(2):
        w, x = sc.shared(np.ones(3), "w"), vector("x")
        f = sc.compile(sc.sum(w * x), [x], updates={w: w - 0.5 * x})
        results.append([(float(f(np.arange(3.0))), w.get_value().tolist()) for _ in range(4)])
    assert is_warm(f) and results[0] == results[1]


def test_what_is_kept_of_weights_is_kept_of_weights() -> None:
    w, v = (sc.shared(np.random.default_rng(k).normal(size=(9, 4)), f"w{k}") for k in range(2))
    x = sc.input("x", "float64", shape=("n", 9))
    outputs = x @ w + sc.tanh(x @ v)
    cold, f = (sc.compile(outputs, [x]) for _ in range(2))
    assert not is_warm(f)
    want = [cold(np.ones((2, 9))), cold(np.ones((5, 9)))]
    f = sc.compile(outputs, [x])
    assert is_warm(f) and isinstance(f._program, WithPrologue)
    for _ in range(3):
        np.testing.assert_array_equal(f(np.ones((2, 9))), want[0])
        np.testing.assert_array_equal(f(np.ones((5, 9))), want[1])
    w.set_value(np.zeros((9, 4)))
    np.testing.assert_array_equal(f(np.ones((2, 9))), cold(np.ones((2, 9))))
    assert not f._compilation.made and f.kernels and f.plan == cold.plan


def test_every_native_function_is_found_by_its_name() -> None:
    """Of the code of plans: what is recorded, another process finds."""
    rng = np.random.default_rng(0)
    m = sc.input("m", "float64", shape=("n", "n"))
    b = sc.input("b", "float64", shape=("n", 16))
    outputs = (sc.linalg.solve(m, b), m @ m.T, 0.5 * (m @ b) + b, sc.linalg.cholesky(m @ m.T), b.T @ m)
    calls = [(rng.normal(size=(n, n)) + 2 * np.eye(n), rng.normal(size=(n, 16))) for n in (6, 160)]
    f = sc.compile(outputs, [m, b], threads=2)
    for args in calls:
        f(*args)
    recording = sc.compile(outputs, [m, b], threads=2)._program.found
    found = [Symbol(find(name), name) for _, name in recording["symbols"]]
    assert {s.name.split()[0] for s in found} == {"ndarray", library().name, "own"}
    assert len({s.name.rpartition(" ")[0] for s in found if s.name.startswith("own")}) == 5  # modules


def test_loops_constants_and_products() -> None:
    table = np.linspace(0, 1, 50)

    def make() -> tuple[Any, list[Any]]:
        h, m = vector("h"), sc.input("m", "float64", shape=("n_h", "n_h"))
        x = sc.input("x", "float64", shape=("t", "n_h"))
        final, _ = sc.scan(lambda c, row: (sc.tanh(m @ c + row), None), h, x)
        return (final, m @ x.T, sc.asarray(table)[: x.shape[0]] * 2), [h, m, x]

    rng = np.random.default_rng(0)
    arrays = rng.normal(size=3), rng.normal(size=(3, 3)), rng.normal(size=(20, 3))
    twice(make, arrays)


def test_errors_are_those_of_the_function_and_name_the_line() -> None:
    def make() -> tuple[Any, list[Any]]:
        x, i = vector("x"), vector("i", "int64")
        return x[i] * 2, [x, i]

    cold, f = twice(make, (np.ones(3), np.array([0, 2])))
    texts = []
    for g in (cold, f):
        with pytest.raises(sc.SymcError) as e:
            g(np.ones(3), np.array([0, 3]))
        texts.append(str(e.value))
    assert texts[0] == texts[1] and "return x[i] * 2" in texts[1]
    np.testing.assert_array_equal(f(np.ones(3), np.array([0, 2])), [2, 2])
    with pytest.raises(sc.ShapeError):
        f(np.ones((3, 3)), np.array([0]))


def test_what_decides_the_program_is_in_its_name() -> None:
    outputs, inputs = affine()
    f = sc.compile(outputs, inputs)
    f(np.ones(2), np.ones(2))
    assert not is_warm(sc.compile(outputs + 1, inputs))
    assert not is_warm(sc.compile(outputs, inputs, donate=[inputs[0]]))
    assert not is_warm(sc.compile(outputs, inputs, pipeline="canonicalize"))
    assert not is_warm(sc.compile(outputs, inputs, mode="fast_compile"))
    assert not is_warm(sc.compile(outputs, inputs, mode="debug"))
    assert not is_warm(sc.compile(outputs, inputs, max_bytes=("1MB", {"n": 2})))
    assert is_warm(sc.compile(outputs, inputs, name="other"))


def test_nothing_is_kept_of_what_users_add() -> None:
    outputs, inputs = affine()
    sc.compile(outputs, inputs)(np.ones(2), np.ones(2))

    with temporary_rules():
        register(Rule("user_rule", "user_family", True, ("add",), lambda v, context: None))
        assert not is_warm(sc.compile(outputs, inputs))
    half = sc.op(lambda a: a / 2, name="test_warm_half", numba=lambda a: a / 2)
    x = sc.vector("x")
    f = sc.compile(half(x), [x])
    f(np.ones(2))
    assert warm.key_of(f._built.function, "default", None, frozenset()) is None


def test_code_that_is_bound_to_this_process_is_not_kept(place: Path) -> None:
    x = vector("x")
    for _ in range(2):
        f = sc.compile(sc.linalg.expm(x[:, None] * x), [x])  # an op in Python
        f(np.arange(3.0))
    assert not is_warm(f)


def test_functions_of_complex_numbers_are_kept(place: Path) -> None:
    z = vector("z", "complex128")
    for _ in range(2):
        f = sc.compile([sc.exp(z) * z + 1, sc.abs(z) ** 2, sc.sum(z / (z + 2))], [z])
        f(np.ones(3, complex))
    assert is_warm(f)


@pytest.mark.parametrize("damage", [lambda d: d[:-1] + bytes([d[-1] ^ 1]), lambda d: d[:60], lambda d: b""])
def test_damaged_entries_are_not_read(damage: Any, place: Path) -> None:
    outputs, inputs = affine()
    want = sc.compile(outputs, inputs)(np.ones(2), np.ones(2))
    for path in place.iterdir():
        path.write_bytes(damage(path.read_bytes()))
    f = sc.compile(outputs, inputs)
    assert not is_warm(f) and f(np.ones(2), np.ones(2)) == want


def test_kernels_that_were_removed_are_compiled_again(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from symc.runtime.cache import machine_code

    outputs, inputs = affine()
    f = sc.compile(outputs, inputs)
    want = f(np.ones(2), np.ones(2))
    key = warm.file_of(f._compilation).key
    for path in place.iterdir():
        if path.stem != key:
            path.unlink()
    monkeypatch.setattr(machine_code, "_kernels", {})
    again = sc.compile(outputs, inputs)
    assert is_warm(again) and again(np.ones(2), np.ones(2)) == want


def test_a_warm_process_imports_no_compiler_and_no_optimizer(place: Path) -> None:
    program = (
        "import sys, numpy as np, symc as sc\n"
        "x, y = sc.vector('x'), sc.vector('y')\n"
        "f = sc.compile(sc.sum(sc.exp(x) * y + 1), [x, y])\n"
        "print(f(np.arange(3.0), np.ones(3)), [m for m in"
        " ('numba', 'symc.opt', 'symc.codegen.plan.planner', 'symc.runtime.compilers.llvm_compile')"
        " if m in sys.modules])"
    )
    cold, again = (subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
                   for _ in range(2))
    assert again.split(" ", 1)[1].strip() == "[]" and cold.split()[0] == again.split()[0]


#: What a process that finds its program on disk does without: it makes no code and no text of functions.
MAKERS = ("symc.opt", "symc.codegen", "symc.runtime.cpu.executor", "symc.runtime.cpu.lowering", "symc.driver.save",
          "symc.driver.stages", "symc.ir.text", "symc.runtime.compilers.linker", "symc.runtime.compilers.llvm",
          "llvmlite", "numba", "scipy", "threading", "hashlib", "zipfile", "dataclasses", "copy")
WARM = {
    "write": ("x, y = sc.vector('x'), sc.vector('y'); f = sc.compile(sc.sum(sc.exp(x) * y + 1), [x, y])", 51),
    "load": ("f = sc.load(sys.argv[1])", 57),
    "unpickle": ("import pickle; f = pickle.loads(pathlib.Path(sys.argv[1] + '.pickle').read_bytes())", 56),
}


@pytest.mark.parametrize("how", WARM)
def test_a_warm_start_imports_what_runs_functions(how: str, tmp_path: Path) -> None:
    """And not much of it: modules are most of what it costs."""
    way, most = WARM[how]
    head = "import pathlib, pickle, sys, numpy as np, symc as sc\nbefore = {*sys.modules}\n"
    keep = "\nf.save(sys.argv[1]); pathlib.Path(sys.argv[1] + '.pickle').write_bytes(pickle.dumps(f))"
    tell = "\nprint(*sorted({*sys.modules} - before))"
    call = "\nassert f(np.arange(3.0), np.ones(3)) > 0"

    def run(*parts: str) -> list[str]:
        code = head + "".join(parts)
        return subprocess.run([sys.executable, "-c", code, str(tmp_path / "f")], capture_output=True, text=True,
                              check=True).stdout.split()

    run(WARM["write"][0], call, keep)
    found = run(way, call, tell)
    assert [m for m in found if f"{m}.".startswith(tuple(f"{n}." for n in MAKERS)) or m.endswith("_ir")] == []
    own = [m for m in found if m.startswith("symc.")]
    assert len(own) <= most, f"{len(own)}: {own}"


def test_a_warm_gradient_imports_what_its_ops_need() -> None:
    """No derivatives of loops and branches, and no tables of facts, where a graph has no loop and nothing is asked."""
    program = ("import sys, numpy as np, symc as sc\nx = sc.vector('x')\n"
               "y = ((x[1:] - x[:-1] ** 2) ** 2 * 100).sum() + ((1 - x[:-1]) ** 2).sum()\n"
               "print(*sc.compile([y, sc.grad(y, x)], [x])(np.arange(3.0)))\nprint(*sys.modules)")
    cold, again = (subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
                   for _ in range(2))
    (first, _), (second, found) = (said.rsplit("\n", 2)[:2] for said in (cold, again))
    assert first == second == "201.0 [  -2. -200.  200.]"
    late = ("symc.grad.scan", "symc.grad.while_loop", "symc.grad.cond", "symc.grad.checkpoint", "symc.grad.implicit",
            "symc.grad.call", "symc.opt.facts.transfer", "symc.codegen", "llvmlite")
    assert not {*found.split()} & {*late}


def test_copies_and_files_of_warm_functions(tmp_path: Path) -> None:
    _, f = twice(affine, (np.ones(2), np.ones(2)))
    f.save(tmp_path / "f.symc")
    assert sc.load(tmp_path / "f.symc")(np.zeros(3), np.ones(3)) == 6
    assert f.copy()(np.zeros(2), np.ones(2)) == 4


def test_what_lasts_becomes_old_and_can_still_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """No search right after the block; a full one finds a cycle that was made in it, and nothing is left frozen."""
    import gc
    import weakref

    from symc.ir.garbage import no_collections

    class Node:
        other: object

    gc.enable()  # Dask leaves them off
    gc.unfreeze()  # the tests, see conftest.py
    gc.collect()
    searches: list[str] = []
    gc.callbacks.append(lambda phase, info: searches.append(phase))
    try:
        with no_collections(lasting=True):
            monkeypatch.setitem(sys.modules, "tests.imported_now", pytest)
            kept = [[] for _ in range(5000)]
            a, b = Node(), Node()
            a.other, b.other = b, a
            gone = weakref.ref(a)
            del a, b
        more = [[] for _ in range(100)]
        assert not searches and gc.isenabled() and gc.get_freeze_count() == 0
    finally:
        gc.callbacks.pop()
    gc.collect()
    gc.freeze()
    assert gone() is None and len(kept) + len(more) == 5100


def test_collections_are_on_again_when_blocks_of_threads_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first ends just when the second has seen that there are none: nobody else would let them begin again."""
    import gc

    from symc.ir import garbage

    gc.enable()  # Dask leaves them off
    first, second = garbage.no_collections(), garbage.no_collections()
    first.__enter__()

    class Interleaved:
        enable, disable = gc.enable, gc.disable

        @staticmethod
        def isenabled() -> bool:
            seen = gc.isenabled()
            first.__exit__(None, None, None)
            return seen

    monkeypatch.setattr(garbage, "gc", Interleaved)
    with second:
        pass
    on = gc.isenabled()
    gc.enable()
    assert on


def test_collections_are_on_again_wherever_a_signal_comes() -> None:
    """A handler may raise between any two instructions, of the block's own too."""
    import gc

    from symc.ir.garbage import no_collections
    from symc.testing.interrupts import interrupted

    def block() -> None:
        sys.modules.pop("tests.imported_now", None)
        with no_collections(lasting=True):
            sys.modules["tests.imported_now"] = pytest

    gc.unfreeze()
    left: list[int] = []
    for n in range(1000):
        stopped = interrupted(block, n)
        if not gc.isenabled() or gc.get_freeze_count():
            left.append(n)
            gc.enable()
            gc.unfreeze()
        if stopped is None:
            break
    gc.freeze()
    sys.modules.pop("tests.imported_now", None)
    assert not left and 5 < n < 999


def test_frozen_objects_are_not_walked_by_each_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers freeze what they have imported; Python counts such objects one by one."""
    import gc

    x = vector("x")
    sc.compile(x + 1, [x])
    counts: list[int] = []
    monkeypatch.setattr(gc, "get_freeze_count", lambda: counts.append(1) or 1)
    sc.compile(x + 2, [x])
    assert not counts


def test_functions_that_sort_are_kept(place: Path) -> None:
    x = vector("x")
    for _ in range(2):
        f = sc.compile([sc.sort(x), sc.argsort(x), sc.topk(x, 2)[1], sc.stack([x * k for k in range(9)])], [x])
        got = f(np.array([2.0, 1.0, 3.0]))
    assert is_warm(f) and [a.tolist() for a in got[:3]] == [[1, 2, 3], [1, 0, 2], [2, 0]]
