"""``backend=``: every op computes the same by all of them, and functions of several backends live side by side.

Generated from the backends, and from the samples of the registry. Numba takes 50 to 400 ms for a kernel, so one sample
in ``SAMPLE`` is compiled; ``SYMC_BACKEND_SAMPLE=1 pytest tests/driver/test_backends.py`` takes all of them, in a
quarter of an hour.
"""

from __future__ import annotations

import os
import pickle
import re
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

import symc as sc
from symc.driver.backend import Backend
from symc.driver.backends import NUMPY, ON_HOST
from symc.ir.function import Function, Input, function
from symc.ir.op import Fold, Op
from symc.runtime.cache import object_cache
from symc.runtime.compilers import numba_compile
from symc.runtime.cpu.kernels import compile_count
from symc.testing.fuzz.checks import compiled
from symc.testing.interrupts import Alarm, alarm
from symc.tools.debugging.tolerance import Oracle
from tests.codegen.test_cpu_kernels import CASES
from tests.driver.equal_programs import is_warm
from tests.ir.op_cases import SAMPLED, apply, cases, observed

SAMPLE = int(os.environ.get("SYMC_BACKEND_SAMPLE", "64"))
BACKENDS = tuple(ON_HOST)
#: LLVM's kernels are everywhere else, and Numba takes long to make its own.
SHARES = {b: SAMPLE if b == "numba" else max(1, SAMPLE // 16) for b in BACKENDS if b != "llvm"}
OPS = [op for op in SAMPLED if op.name != "cached"]  # it parts a program by its states


def chosen(op: Op, share: int) -> list[tuple[list[np.ndarray], dict]]:
    """One in ``share`` of the samples of an op, the same ones in every run."""
    return [case for k, case in enumerate(cases(op)) if crc32(f"{op.name} {k}".encode()) % share == 0]


def whole(op: Op, samples: list[tuple[list[np.ndarray], dict]]) -> tuple[Function, list[np.ndarray]]:
    """A function of an op on every sample, and what to call it on."""
    leaves, outputs, arrays = [], [], []
    for operands, attrs in samples:
        v, own = apply(op, operands, attrs)
        leaves += own
        arrays += [np.array(a, order="C") for a in operands]
        outputs += observed(v)
    inputs = [(x, Input(f"x{k}", x.type)) for k, x in enumerate(leaves)]  # type: ignore[arg-type]
    return function(op.name, inputs, outputs), arrays


#: What codegen/test_cpu_kernels.py compiles by Numba: elementwise ops, every one of them, and folds.
KERNELS = {op for case in CASES for op in case.values[2]} | {op for op in OPS if isinstance(op.lowering, Fold)}


def by(backend: str) -> list[Op]:
    """The ops of which samples are compiled."""
    apart = KERNELS if backend == "numba" and SAMPLE > 1 else set()
    return [op for op in OPS if op not in apart and chosen(op, SHARES[backend])]


@pytest.mark.parametrize("backend, op", [pytest.param(b, op, id=f"{b}-{op.name}") for b in SHARES for op in by(b)])
def test_every_op_computes_what_its_reference_does(backend: str, op: Op) -> None:
    f, arrays = whole(op, chosen(op, SHARES[backend]))
    oracle = Oracle(f, arrays)
    g = compiled(f, "default", backend=backend)
    assert {k.backend for k in g.kernels} <= {backend}
    got = g(*[a.copy() for a in arrays])
    found = oracle.difference(got)
    assert found is None, f"{found}\n{g.source}"


def program() -> tuple[list[Any], list[Any], list[np.ndarray]]:
    """Functions, sums, an index that is checked, complex numbers and half precision."""
    x = sc.input("x", "float64", shape=("n", 3))
    k = sc.input("k", "int64", shape=("m",))
    half = x.astype("float16")
    outputs = [sc.softmax(x, axis=1), sc.sum(sc.tanh(x)), x[k] * 2, sc.abs(sc.exp(1j * x)), half * half + 1]
    return outputs, [x, k], [np.random.default_rng(0).normal(size=(5, 3)), np.array([4, 0])]


def test_functions_of_several_backends_live_side_by_side() -> None:
    outputs, inputs, arrays = program()
    compiled_by = {b: sc.compile(outputs, inputs, backend=b) for b in BACKENDS}
    made = {b: [k.backend for k in f.kernels] for b, f in compiled_by.items()}
    assert all(set(made[b]) == {b} if ON_HOST[b].plans else set(made[b]) <= {b} for b in BACKENDS)
    assert not made["numpy"]
    assert compiled_by["llvm"].source == compiled_by["numba"].source != compiled_by["numpy"].source
    before = compile_count()
    again = {b: sc.compile(outputs, inputs, backend=b) for b in (*BACKENDS[::-1], None)}
    assert compile_count() == before and [k.backend for k in again[None].kernels] == made["llvm"]
    want = sc.compile(outputs, inputs, mode="reference")(*arrays)
    with ThreadPoolExecutor(4) as pool:
        for got in pool.map(lambda b: again[b](*arrays), [*BACKENDS, None] * 10):
            for a, b in zip(got, want, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-3 if a.dtype == np.float16 else 1e-13)
    for f in again.values():
        with pytest.raises(IndexError, match="index 9 is out of bounds"):
            f(arrays[0], np.array([9]))


def test_a_backend_is_an_option_of_every_door() -> None:
    x = sc.input("x", "float64", shape=("n",))
    for backend in SHARES:
        f = sc.compile(sc.exp(x) + 1, [x], backend=backend)
        deferred = sc.compile(sc.exp(sc.Variable("v")) + 1, backend=backend)
        traced = sc.jit(lambda v: np.exp(v) + 1, backend=backend)
        debugged = sc.compile(sc.exp(x) + 1, [x], backend=backend, mode="debug")
        for g in (f, pickle.loads(pickle.dumps(f)), deferred, traced, debugged):
            np.testing.assert_allclose(g(np.arange(3.0)), np.exp(np.arange(3.0)) + 1, rtol=1e-15)
            assert [k.backend for k in g.kernels] == [k.backend for k in f.kernels]
        assert not ON_HOST[backend].plans or {k.backend for k in f.kernels} == {backend}


# --- what a record says is asked of it --------------------------------------------------------------------------------


class _Wrong:
    """Runs a program, and is wrong."""

    def __init__(self, program: Any):
        self.program = program

    def __getattr__(self, name: str) -> Any:
        return getattr(self.program, name)

    def run(self, *given: Any, **named: Any) -> list[np.ndarray]:
        return [a + 1 for a in self.program.run(*given, **named)]


#: Records that no file knows by name: without plans, right and wrong.
OTHERS = {"toy": Backend("toy", NUMPY.load, NUMPY.calls, plans=False),
          "wrong": Backend("wrong", lambda *given: _Wrong(NUMPY.load(*given)), NUMPY.calls, plans=False)}


@pytest.fixture
def others(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, record in OTHERS.items():
        monkeypatch.setitem(ON_HOST, name, record)


@pytest.mark.parametrize("name", [*BACKENDS, *OTHERS])
def test_what_a_backend_lacks_is_said_with_its_name(name: str, others: None) -> None:
    x, backend = sc.input("x", "float64", shape=("n",)), ON_HOST[name]
    said = re.escape(f"backend={name!r}")
    f = sc.compile(x * 0.5, [x], backend=name)
    if backend.plans:
        assert f.plan
    else:
        with pytest.raises(sc.PlanError, match=said):
            _ = f.plan
        with pytest.raises(sc.InputError, match=said):
            sc.compile(x * 0.5, [x], backend=name, max_bytes=("1 MB", {"n": 2}))
    if backend.flushes:
        assert not sc.compile(x * 0.5, [x], backend=name, denormals="flush")([1e-310]).any()
    else:
        with pytest.raises(sc.InputError, match=said):
            sc.compile(x * 0.5, [x], backend=name, denormals="flush")
    for mode in ("default", "fast_compile", "debug", "reference", "nan_guard"):
        if mode in backend.modes:
            assert name == "wrong" or sc.compile(x * 0.5, [x], backend=name, mode=mode)([3.0]) == [1.5]
        else:
            with pytest.raises(sc.InputError, match=said):
                sc.compile(x * 0.5, [x], backend=name, mode=mode)


def test_a_wrong_backend_is_blamed(others: None) -> None:
    """Without plans it has no kernels to look at, and is wrong all the same."""
    x = sc.input("x", "float64", shape=("n",))
    with pytest.raises(sc.InternalError, match="debug: the backend"):
        sc.compile(x * 0.5, [x], backend="wrong", mode="debug")([3.0])
    assert sc.bisect(sc.compile(x * 0.5, [x], backend="wrong"), [3.0]).kind == "backend"
    assert sc.bisect(sc.compile(x * 0.5, [x], backend="toy"), [3.0]).kind == "nothing"


@pytest.mark.parametrize("name", BACKENDS)
def test_a_backend_is_written_about(name: str) -> None:
    """Where users look for it."""
    assert f'"{name}"' in sc.compile.__doc__
    assert f'| `"{name}"` |' in (Path(__file__).parents[2] / "docs/guide.md").read_text("utf-8")


def test_what_is_on_disk_is_of_one_backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(object_cache.FOLDER, str(tmp_path))
    x = sc.input("x", "float64", shape=("n",))
    for backend, kernels in (("llvm", ["llvm"]), ("numba", ["numba"]), ("numpy", []), (None, ["llvm"])):
        f = sc.compile(sc.sin(x) * 3, [x], backend=backend)
        f(np.arange(3.0))
        assert is_warm(f) == (backend is None)
        assert [k.backend for k in f.kernels] == kernels


#: Kinds of kernels: values, inputs, arguments of calls.
def _kinds() -> dict[str, Any]:
    n, m = sc.input("n", "float64", shape=("n",)), sc.input("m", "float32", shape=("n", 5))
    w = sc.input("w", "int8", shape=("n",))
    numbers = np.random.default_rng(1).normal(size=200_000)
    rows = numbers[:100_000].astype("f4").reshape(-1, 5)
    return {
        "sums in blocks, by several threads": ([sc.sum(sc.exp(n)), sc.max(n), n * n.mean()], n, numbers),
        "pieces, by several threads": ([sc.erf(n) * sc.log1p(n * n)], n, numbers),
        "rows": ([sc.log_softmax(m, axis=1), sc.sum(m, axis=0), sc.argmax(m, axis=1)], m, rows),
        "a loop that looks for signals": (sc.scan(lambda h, r: (sc.cos(h + r), h), 0.0, n), n, numbers[:2000]),
        "a loop until": ([sc.while_loop(lambda s: sc.abs(s) < 1e6, lambda s: s * 1.001 + 1, n[0])], n, numbers[:3]),
        "small integers": ([w + w, w // 3, w % 5, sc.cumsum(w), w << 3], w, np.arange(-128, 128).astype("i1")),
        "running sums": ([sc.cumsum(m, axis=0), sc.cumprod(m, axis=1)], m, rows[:7]),
        "updates": ([n.at[sc.asarray([0, 2, 0])].add(1.5), sc.concatenate([n, n * 2])], n, numbers[:4]),
    }


KINDS = _kinds()


@pytest.mark.parametrize("name", KINDS)
def test_kinds_of_kernels(name: str) -> None:
    outputs, x, array = KINDS[name]
    want = sc.compile(outputs, [x], mode="reference")(array)
    for threads in (1, 2):
        f = sc.compile(outputs, [x], backend="numba", threads=threads)
        assert f.kernels and "reference" not in f.plan
        got = f(array)
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-6 if a.dtype == np.float32 else 1e-12, atol=1e-6)
        if threads == 1:
            one = got
    for a, b in zip(one, got, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_users_function_is_numbas_in_every_backend_with_kernels() -> None:
    from symc.ir.op import unregister

    @sc.op(numba=lambda t: t * t)  # type: ignore[misc]
    def squared_by_numba(t: Any) -> Any:
        return np.square(t)

    try:
        x = sc.input("x", "float64", shape=("n",))
        for backend in BACKENDS:
            f = sc.compile(squared_by_numba(x) + 1, [x], backend=backend)
            assert f([1.0, 2.0]).tolist() == [2.0, 5.0]
            assert not ON_HOST[backend].plans or [k.backend for k in f.kernels] == ["numba"]
    finally:
        unregister("squared_by_numba")


def test_numba_switched_off_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from numba.core import config

    monkeypatch.setattr(config, "DISABLE_JIT", 1)
    x = sc.input("x", "float64", shape=("n",))
    with pytest.raises(sc.SymcError, match="NUMBA_DISABLE_JIT=1 switches Numba off"):
        sc.compile(x * 0.625 + 0.375, [x], backend="numba")


def test_the_mode_of_a_debugging_run_goes_before_a_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    x = sc.input("x", "float64", shape=("n",))
    for mode in ("reference", "nan_guard"):
        monkeypatch.setenv("SYMC_FLAGS", f"mode={mode}; backend=numba")
        for backend in (None, "llvm", "numpy"):
            assert repr(sc.compile(x + 1, [x], backend=backend)).endswith(f"mode {mode!r}>")
    monkeypatch.setenv("SYMC_FLAGS", "backend=numpy")
    assert repr(sc.compile(x + 1, [x])).endswith("mode 'default', backend 'numpy'>")


def test_an_interrupt_leaves_numba_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler that raises does so at once, and never inside of Numba, whose tables would be left half made."""
    native, threads = numba_compile._native, []

    def slow(*given: Any) -> Any:
        threads.append(threading.current_thread())
        time.sleep(0.5)
        return native(*given)

    x = sc.input("x", "float64", shape=("n",))
    value = sc.sum(x * 0.8125 + 3)
    sc.compile(sc.sum(x * 0.4375 + 3), [x], backend="numba")
    monkeypatch.setattr(numba_compile, "_native", slow)
    before = signal.signal(signal.SIGALRM, alarm)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(Alarm):
            sc.compile(value, [x], backend="numba")
        assert threads[0] is not threading.main_thread() and threads[0].is_alive()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert sc.compile(value, [x], backend="numba")(np.ones(2)) == 7.625
    threads[0].join()
