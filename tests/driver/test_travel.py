"""Functions in other processes: by pickle and cloudpickle, with fork, forkserver, spawn and loky."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import cloudpickle
import joblib
import numpy as np
import pytest
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import FunctionTransformer

import symc as sc
from symc.driver import read_saved, stages
from symc.opt.engine import pipelines
from symc.runtime import threads
from symc.runtime.cache import object_cache
from tests.driver import travelling
from tests.driver.equal_programs import is_warm

ROOT = Path(__file__).resolve().parents[2]
X = travelling.A


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    return travelling.things()


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_other_processes_compute_the_same_bits(made: dict[str, Any], method: str) -> None:
    arrived = pickle.loads(pickle.dumps(made))  # with states of its own, as where it goes
    with ProcessPoolExecutor(1, multiprocessing.get_context(method)) as pool:
        process, got, token = pool.submit(travelling.report, made).result(60)
        assert pool.submit(travelling.in_threads, made).result(60)
    assert process != multiprocessing.current_process().pid
    assert got == travelling.results(arrived)
    assert token == made["compiled"].__dask_tokenize__()


def test_states_of_one_pickle_stay_shared(made: dict[str, Any]) -> None:
    step, read = pickle.loads(pickle.dumps((made["step"], made["read"])))
    assert step.shared["w"].cell is read.shared["w"].cell
    assert step.shared["w"].cell is not made["step"].shared["w"].cell


@pytest.fixture(scope="module")
def workers() -> Iterator[Any]:
    with joblib.parallel_config("loky", n_jobs=2, inner_max_num_threads=1):
        yield joblib.Parallel()


def test_functions_without_a_name_travel_by_cloudpickle(workers: Any) -> None:
    @sc.op(derivative=lambda x: 2.0)
    def twofold(x: Any) -> Any:
        return x + x

    rate, w = 0.5, sc.shared(np.ones(2), "w")
    local = sc.jit(lambda x: sc.special.erf(x) * rate + twofold(x), mode="reference")
    x = sc.vector("x")
    functions = [
        lambda a: sc.compile(sc.grad(sc.nn.relu(x).sum(), x), [x], mode="reference")(a),
        lambda a: local(a), sc.compile(twofold(x), [x]), lambda a: (a * w.get_value()[0]),
    ]
    for f, there in zip(functions, workers(joblib.delayed(f)(X) for f in functions), strict=True):
        np.testing.assert_array_equal(f(X), there)


def test_workers_use_their_share_of_the_processors(workers: Any) -> None:
    assert set(workers(joblib.delayed(travelling.share)() for _ in range(2))) == {1}


def test_scikit_learn_sends_functions(workers: Any) -> None:
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline

    x = sc.matrix("x")
    f = sc.compile(sc.tanh(x), [x])
    a = np.random.default_rng(0).normal(size=(30, 3))
    pipeline = make_pipeline(FunctionTransformer(f), Ridge())
    with joblib.parallel_config("loky", n_jobs=2):
        found = cross_val_score(pipeline, a, np.tanh(a).sum(1), cv=2, n_jobs=2)
    assert found.min() > 0.9


def test_the_share_of_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "processors", lambda: 8)
    monkeypatch.delenv(threads.VARIABLE, raising=False)
    for said, want in {"3": 3, "2,1": 2, "64": 8, "0": 8, "": 8, "many": 8, "-1": 8}.items():
        monkeypatch.setenv(threads.SHARE, said)
        assert threads.threads_of(None) == want
    assert threads.threads_of(5) == 5
    monkeypatch.setenv(threads.VARIABLE, "6")
    assert threads.threads_of(None) == 6


# --- loading ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own."""
    monkeypatch.setenv(object_cache.FOLDER, str(tmp_path / "cache"))
    return tmp_path


def saved(path: Path, **options: Any) -> Any:
    x = sc.input("x", "float64", ("n",))
    f = sc.compile(sc.exp(x) * 2 + sc.exp(x).sum(), [x], **options)
    f(X)
    f(X[:3])
    f.save(path)
    return f


@pytest.mark.parametrize("options", [{}, {"specialize": {"n": 7}}])
def test_what_was_compiled_here_loads_without_optimizer_and_text(
    place: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    f = saved(place / "f", **options)
    sent = pickle.dumps(f)
    monkeypatch.setattr(stages, "optimize", None)
    monkeypatch.setattr(read_saved, "_final", lambda *args: pytest.fail("the text was read"))
    for g in (sc.load(place / "f"), pickle.loads(sent)):
        assert is_warm(g) and g(X).tobytes() == f(X).tobytes()
    monkeypatch.undo()
    assert sc.load(place / "f").dump() == f.dump()


def python_calls(f: Callable[[], Any]) -> int:
    """Python functions that a call calls."""
    count = 0

    def see(frame: Any, event: str, arg: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(see)
    try:
        f()
    finally:
        sys.setprofile(None)
    return count


def network() -> Any:
    P = sc.Params(seed=0)
    x, y = sc.input("x", "float32", shape=("n", 6)), sc.input("y", "int64", shape=("n",))
    h = sc.nn.dense(P.sub("hidden"), x, 4, activation="relu")
    u = sc.optim.adam(1e-3).updates(sc.nn.cross_entropy(sc.nn.dense(P.sub("out"), h, 3), y), P)
    return sc.compile(u.loss, [x, y], updates=u), (np.ones((5, 6), "float32"), np.zeros(5, int))


def density() -> Any:
    x = sc.vector("x")
    logp = (sc.log1p(sc.exp(-x)) - x**2).sum()
    return sc.compile([logp, sc.grad(logp, x)], [x]), (X,)


@pytest.mark.parametrize("make", [network, density])
def test_loading_takes_less_than_building(place: Path, make: Callable[[], Any]) -> None:
    f, arrays = make()
    f(*arrays)  # from here on its code is on disk
    f.save(place / "f")
    sent = pickle.dumps(f)
    built = python_calls(make)
    assert python_calls(lambda: sc.load(place / "f")) < 0.8 * built
    assert python_calls(lambda: pickle.loads(sent)) < 0.8 * built


def test_a_process_that_loads_imports_no_optimizer_and_no_zipfile(place: Path) -> None:
    saved(place / "f")
    heavy = {"zipfile", "numba", "scipy", "llvmlite", "symc.opt", "symc.grad", "symc.codegen.plan"}
    code = f"import sys, symc; f = symc.load({str(place / 'f')!r}); print({heavy} & {{*sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_what_another_version_optimized_is_run_as_it_was_and_kept(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = sc.input("x", "float64", ("n",))
    other = sc.compile(sc.log(1 + sc.exp(x)), [x], pipeline=f"{pipelines.DEFAULT},-stabilize")
    other._options["pipeline"] = None  # as if this were what its optimizer makes
    other.save(place / "f")
    own = sc.compile(sc.log(1 + sc.exp(x)), [x])
    assert own([1000.0]) == 1000 and other([1000.0]) == np.inf
    found = sc.load(place / "f")
    assert found([1000.0]) == np.inf and not is_warm(found)
    assert found._compilation.final.body is other._compilation.final.body
    monkeypatch.setattr(stages, "plan", None)
    again = sc.load(place / "f")
    assert is_warm(again) and again([1000.0]) == np.inf


def test_processes_without_a_cache_load_what_was_optimized(place: Path) -> None:
    f = saved(place / "f")
    code = f"from tests.driver.travelling import loaded; print(*loaded({str(place / 'f')!r}))"
    env = {**os.environ, "SYMC_CACHE_DIR": "off"}
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT, env=env)
    assert out.stdout.split()[-1] == "1"  # it is asked, and gives what it is given
    assert f(X).tobytes() == eval(out.stdout.rpartition(" ")[0])


# --- a user's ops, and what is wrong ----------------------------------------------------------------------------------

MODULE = """
import ctypes, math
import symc as sc

@sc.op
def tripled(x):
    return x * 3

@sc.op(name="fourfold")
def _other(x):
    return x * 4

cosine = sc.c_function(ctypes.cast(ctypes.CDLL(None).cos, ctypes.c_void_p).value, "double cosine(double)")
"""


def elsewhere(code: str, data: bytes, path: str) -> subprocess.CompletedProcess:
    """A new process that has ``o`` of a pickle."""
    code = f"import pickle, sys, numpy as np\no = pickle.load(sys.stdin.buffer)\n{code}"
    return subprocess.run([sys.executable, "-c", code], input=data, capture_output=True, cwd=ROOT,
                          env={**os.environ, "PYTHONPATH": f"{ROOT}:{path}"})


@pytest.fixture(scope="module")
def ops(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("ops")
    (folder / "my_own_ops.py").write_text(MODULE)
    sys.path.insert(0, str(folder))
    try:
        import my_own_ops  # type: ignore[import-not-found]

        yield my_own_ops, str(folder)
    finally:
        sys.path.remove(str(folder))


def test_ops_of_a_module_are_found_by_importing_it(ops: Any, tmp_path: Path) -> None:
    module, folder = ops
    x = sc.vector("x")
    f = sc.compile(module.tripled(x) + module._other(x) + module.cosine(x), [x])
    data = pickle.dumps((f, module.tripled, module.tripled(x) * 2, module.cosine))
    done = elsewhere("print(o[0](np.zeros(1))[0], 'cloudpickle' in sys.modules)", data, folder)
    assert done.stdout.split() == [b"1.0", b"False"], done.stderr.decode()
    done = elsewhere("", data, "")
    assert b"No module named 'my_own_ops'" in done.stderr
    done = elsewhere("", pickle.dumps(f), "")
    assert b"InputError: the op cosine is of the module my_own_ops, which cannot be imported here" in done.stderr
    f.save(tmp_path / "f.symc")
    code = f"import symc as sc; sc.load({str(tmp_path / 'f.symc')!r})"
    done = elsewhere(code, pickle.dumps(0), folder)  # a file imports nothing
    assert b"uses the op cosine of the module my_own_ops, which is not defined here" in done.stderr
    assert b"define it before: import my_own_ops" in done.stderr
    done = elsewhere("import my_own_ops; " + code + "; print('read')", pickle.dumps(0), folder)
    assert done.stdout == b"read\n", done.stderr.decode()


def test_ops_of_the_main_module_bring_their_functions() -> None:
    @sc.op
    def fivefold(x: Any) -> Any:
        return x * 5

    x = sc.vector("x")
    f = sc.compile(fivefold(x), [x])
    done = elsewhere("print(o[0](np.ones(1))[0], o[1].op is o[2].value.op)",
                     cloudpickle.dumps((f, fivefold, fivefold(x))), "")
    assert done.stdout.split() == [b"5.0", b"True"], done.stderr.decode()
    assert cloudpickle.loads(cloudpickle.dumps(fivefold)).op is fivefold.op


def test_an_op_that_cannot_travel_is_named() -> None:
    sine = ctypes.cast(ctypes.CDLL("libm.so.6").sin, ctypes.c_void_p).value
    x = sc.vector("x")
    f = sc.compile(sc.c_function(sine, "double my_sine(double)")(x), [x])
    done = elsewhere("", pickle.dumps(f), "")
    assert b"the op my_sine is of" in done.stderr and b"define it in a module, outside of functions" in done.stderr


def test_a_derivative_is_that_of_the_function_which_made_the_value() -> None:
    @sc.function_op(vjp=lambda g, x: 7 * g)
    def own(x: Any) -> Any:
        return sc.sin(x)

    x = sc.vector("x")
    code = ("import symc as sc\n@sc.function_op(vjp=lambda g, x: 9 * g)\ndef own(x): return sc.sin(x)\n"
            "own(o[1])\nsc.grad(o[0], o[1])")
    done = elsewhere(code, pickle.dumps((own(x).sum(), x)), "")
    assert b"the derivative of own is not known in this process" in done.stderr


def test_pickles_of_another_version_are_refused(made: dict[str, Any]) -> None:
    make, (data, cells, ops) = made["compiled"].__reduce__()
    for edited in (data[:-30], data.replace(b'meta.json', b'atem.json')):
        with pytest.raises(sc.InputError, match="is not a saved function"):
            make(edited, cells, ops)


def test_tokens_tell_functions_apart(made: dict[str, Any]) -> None:
    x = sc.input("x", "float64", ("n",))
    again = sc.compile(sc.exp(x).sum(), [x])
    assert again.__dask_tokenize__() == made["compiled"].__dask_tokenize__()
    others = [made[k] for k in ("specialized", "own op", "read", "of sizes that are data")]
    others += [sc.compile(sc.exp(x).sum(), {"y": x}), sc.compile([sc.exp(x).sum()], [x]),
               sc.compile(sc.exp(x).sum(), [x], mode="fast_compile")]
    assert len({str(f.__dask_tokenize__()) for f in [again, *others]}) == len(others) + 1
    step = made["step"].copy()
    before = step.__dask_tokenize__()
    step(X)
    assert step.__dask_tokenize__() != before  # what a call gives depends on the states
