"""Sizes that are data: results equal NumPy's, derivatives are right, and one compiled function serves every size."""

from __future__ import annotations

import gc
import io
import json
import pickle
import threading
import weakref
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import symc as sc
from symc.driver.measured import MeasuredFunction
from symc.testing import emulated_cuda
from tests.cuda.emulated import needs_compiler

RNG = np.random.default_rng(7)
Y, X, K, I, B = (sc.vector("y"), sc.matrix("x"), sc.input("k", "int64", ()), sc.input("i", "int64", ("m",)),
                 sc.input("b", "bool", ("n",)))
A, M = RNG.normal(size=7), RNG.normal(size=(6, 3))
N, EMPTY = RNG.integers(0, 5, 20), np.zeros(0, np.int64)
NAN = np.array([2.0, np.nan, 1.0, np.nan, 2.0, -0.0, 0.0])
ENDS = (2, -2, 0, 100, -100)

#: What is written, its inputs, what it is called with, and what NumPy says.
CASES: dict[str, tuple[Callable[..., Any], list[Any], list[tuple], Callable[..., Any] | None]] = {
    "arange": (lambda k: sc.arange(k) * 2, [K], [(3,), (0,), (-2,)], lambda k: np.arange(k) * 2),
    "arange of ends": (lambda k, y: sc.arange(k, y[0], 0.5), [K, Y], [(3, A * 0 + 7.2), (0, A)],
                       lambda k, y: np.arange(k, y[0], 0.5)),
    "arange down": (lambda k: sc.arange(k, -k, -3), [K], [(5,), (0,), (-5,)], lambda k: np.arange(k, -k, -3)),
    "zeros": (lambda k: sc.zeros((k, 2)), [K], [(3,), (0,)], lambda k: np.zeros((k, 2))),
    "eye": (sc.eye, [K], [(3,), (0,)], np.eye),
    "linspace": (lambda k: sc.linspace(0.0, 1.0, k), [K], [(5,), (1,)], lambda k: np.linspace(0, 1, k)),
    "tile": (sc.tile, [Y, K], [(A, 3), (A, 0)], np.tile),
    "from": (lambda y, k: y[k:], [Y, K], [(A, k) for k in ENDS], None),
    "up to": (lambda y, k: y[:k], [Y, K], [(A, k) for k in ENDS], None),
    "up to, backwards": (lambda y, k: y[:k:-1], [Y, K], [(A, k) for k in ENDS], None),
    "every second, backwards": (lambda y, k: y[k::-2], [Y, K], [(A, k) for k in ENDS], None),
    "a window": (lambda y, k: y[k:k + 3:2], [Y, K], [(A, k) for k in ENDS], None),
    "batches": (lambda x, k: x[k * 2:(k + 1) * 2] @ np.ones((3, 2)), [X, K], [(M, 0), (M, 2), (M, 7)], None),
    "differences": (lambda y, k: y[k:] - y[:-k], [Y, K], [(A, 1), (A, 3)], None),
    "mask": (lambda y: y[y > 0], [Y], [(A,), (A * 0,), (A * 0 + 1,), (A[:0],)], None),
    "mask in two axes": (lambda x: x[x > 0], [X], [(M,), (-abs(M),)], None),
    "mask and an axis": (lambda x: x[x[:, 0] > 0, 1], [X], [(M,)], None),
    "mask of rows": (lambda x: x[x[:, 0] > 0].T @ x[x[:, 0] > 0], [X], [(M,)], None),
    "mask of another": (lambda y, b: y[b].sum(), [Y, B], [(A, A > 1)], None),
    "mask, then a slice": (lambda y, k: y[y > 0][:k], [Y, K], [(A, 2)], None),
    "mask of a mask": (lambda y: y[y > 0][y[y > 0] < 1], [Y], [(A,)], None),
    "size of a mask": (lambda y: sc.asarray(y[y > 0].shape[0] * 2), [Y], [(A,)], lambda y: (y > 0).sum() * 2),
    "mean": (lambda y: y[y > 0].mean(), [Y], [(A,)], None),
    "sorted": (lambda y: sc.sort(y[y > 0])[::-1], [Y], [(A,)], lambda y: np.sort(y[y > 0])[::-1]),
    "both parts": (lambda y: sc.concatenate([y[y > 0], y[y <= 0]]), [Y], [(A,)],
                   lambda y: np.concatenate([y[y > 0], y[y <= 0]])),
    "nonzero": (sc.nonzero, [X], [(M * (M > 0),)], np.nonzero),
    "where": (sc.where, [B], [(A > 0,)], np.where),
    "flatnonzero": (sc.flatnonzero, [X], [(M * (M > 0),)], np.flatnonzero),
    "argwhere": (sc.argwhere, [X], [(M * (M > 0),)], np.argwhere),
    "compress": (lambda b, x: sc.compress(b, x, axis=0), [B, X], [(M[:, 0] > 0, M), (M[:4, 0] > 0, M)],
                 lambda b, x: np.compress(b, x, axis=0)),
    "extract": (lambda x: sc.extract(x > 0, x), [X], [(M,)], lambda x: np.extract(x > 0, x)),
    "trim_zeros": (sc.trim_zeros, [I], [(N * (N > 2),), (N * 0,), (EMPTY,)], np.trim_zeros),
    "trim_zeros in front": (lambda i: sc.trim_zeros(i, "f"), [I], [(N * (N > 2),)], lambda i: np.trim_zeros(i, "f")),
    "unique": (sc.unique, [I], [(N,), (EMPTY,), (N[:1],)], np.unique),
    "unique of floats": (sc.unique, [Y], [(NAN,), (A,)], np.unique),
    "unique and more": (lambda i: sc.unique(i, True, True, True), [I], [(N,), (EMPTY,)],
                        lambda i: np.unique(i, True, True, True)),
    "unique of a matrix": (lambda x: sc.unique(x, return_inverse=True), [X], [(M.round(),)],
                           lambda x: np.unique(x, return_inverse=True)),
    "unique_all": (sc.unique_all, [Y], [(NAN,)], np.unique_all),
    "unique_counts": (sc.unique_counts, [Y], [(NAN,)], np.unique_counts),
    "unique_inverse": (sc.unique_inverse, [I], [(N,)], np.unique_inverse),
    "unique_values": (sc.unique_values, [Y], [(NAN,)], np.unique_values),
    "union1d": (lambda i: sc.union1d(i, i + 3), [I], [(N,)], lambda i: np.union1d(i, i + 3)),
    "intersect1d": (lambda i: sc.intersect1d(i, i[:5] + 3, return_indices=True), [I], [(N,)],
                    lambda i: np.intersect1d(i, i[:5] + 3, return_indices=True)),
    "setdiff1d": (lambda i: sc.setdiff1d(i, i[:2]), [I], [(N,)], lambda i: np.setdiff1d(i, i[:2])),
    "setxor1d": (lambda i: sc.setxor1d(i, i + 3), [I], [(N,)], lambda i: np.setxor1d(i, i + 3)),
    "bincount": (sc.bincount, [I], [(N,), (EMPTY,)], np.bincount),
    "bincount of at least": (lambda i: sc.bincount(i, minlength=9), [I], [(N,), (EMPTY,)],
                             lambda i: np.bincount(i, minlength=9)),
    "repeat": (lambda i: sc.repeat(i, i), [I], [(N,), (EMPTY,), (N * 0,)], lambda i: np.repeat(i, i)),
    "repeat all": (sc.repeat, [I, K], [(N, 3), (N, 0)], np.repeat),
    "repeat rows": (lambda x, k: sc.repeat(x, sc.arange(6) % k, axis=0), [X, K], [(M, 3)],
                    lambda x, k: np.repeat(x, np.arange(6) % k, axis=0)),
    "split": (lambda y, k: tuple(sc.split(y, [k])), [Y, K], [(A, 2)], lambda y, k: tuple(np.split(y, [k]))),
    "set a slice": (lambda y, k: y.at[k:].set(0.0), [Y, K], [(A, 2)], lambda y, k: np.where(np.arange(7) < k, y, 0)),
    "set a mask": (lambda y: y.at[y > 0].add(y[y > 0]), [Y], [(A,)], lambda y: np.where(y > 0, 2 * y, y)),
    "scan": (lambda y, k: sc.scan(lambda c, _: (c * 2, c), y[0], length=k)[1], [Y, K], [(A, 3), (A, 0)],
             lambda y, k: y[0] * 2.0 ** np.arange(k)),
    "until": (lambda y: sc.scan(lambda c, x: (c + x, c + x), 0.0, y, until=lambda c, s: s > 8)[1], [Y],
              [(np.arange(9.0),), (np.arange(3.0),), (A[:0],)],
              lambda y: np.cumsum(y)[:np.argmax(np.append(np.cumsum(y) > 8, True)) + 1]),
    "until, backwards": (lambda y: sc.scan(lambda c, x: (c + x, c + x), 0.0, y, reverse=True,
                                           until=lambda c, s: c > 8)[1], [Y], [(np.arange(6.0),)],
                         lambda y: np.array([9.0, 5.0])),
    "until with taps": (lambda k: sc.scan(lambda h, _: (h[0] + h[1], h[0] + h[1]), sc.taps(np.array([0.0, 1.0]),
                                          [-2, -1]), length=k, until=lambda c, s: s > 20)[1], [K], [(30,), (3,)],
                        lambda k: np.array([1.0, 2, 3, 5, 8, 13, 21])[:k]),
}  # fmt: skip


def assert_same(found: Any, wanted: Any) -> None:
    if isinstance(wanted, tuple):
        assert len(found) == len(wanted)
        for f, w in zip(found, wanted, strict=True):
            assert_same(f, w)
    else:
        assert found.dtype == np.asarray(wanted).dtype and np.shape(found) == np.shape(wanted)
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_results_are_numpys(name: str) -> None:
    written, inputs, calls, numpy = CASES[name]
    f = sc.compile(written(*inputs), inputs)
    assert isinstance(f, MeasuredFunction)
    found = sc.compile(written(*inputs))  # inputs are found, too
    for args in calls:
        assert_same(f(*args), (numpy or written)(*args))
        by_name = {x.name: a for x, a in zip(inputs, args, strict=True)}
        assert_same(found(**{s.name: by_name[s.name] for s in found.slots}), (numpy or written)(*args))


@pytest.mark.parametrize("options", [dict(mode="reference"), dict(mode="debug"), dict(mode="nan_guard"),
                                     dict(mode="fast_compile"), dict(backend="numpy"), dict(backend="numba")], ids=str)
def test_every_mode_and_backend(options: dict[str, str]) -> None:
    slow = options.get("mode") == "debug" or options.get("backend") == "numba"
    for name in ("mask", "a window", "unique and more", "repeat", "until")[slow : 2 + slow if slow else 5]:
        written, inputs, calls, numpy = CASES[name]
        f = sc.compile(written(*inputs), inputs, **options)
        for args in calls:
            assert_same(f(*args), (numpy or written)(*args))


@needs_compiler
def test_on_a_device() -> None:
    with emulated_cuda():
        for name in ("mask", "from", "nonzero", "bincount", "set a mask", "size of a mask"):
            written, inputs, calls, numpy = CASES[name]
            f = sc.compile(written(*inputs), inputs, device="cuda", transfers="auto")
            for args in calls[:2]:
                assert_same(f(*map(np.asarray, args)), (numpy or written)(*args))


def test_any_slice_by_data() -> None:
    """Bounds that are data, numbers or none, steps of both signs: one function for each form serves all bounds."""
    other = sc.input("l", "int64", ())
    for step in (1, 2, 3, -1, -2, None):
        for first, last in ((K, other), (K, None), (None, K), (K, 3), (-2, K)):
            f = sc.compile(X[first:last:step, 1:], [X, K, other])
            f(M, 0, 0)
            compiled = f.compile_count
            for k, m in RNG.integers(-9, 9, (12, 2)):
                bounds = [int({id(K): k, id(other): m}.get(id(b), b)) if b is not None else None for b in (first, last)]
                assert_same(f(M, k, m), M[bounds[0]:bounds[1]:step, 1:])
            assert f.compile_count == compiled


def differences(f: Callable[[np.ndarray], float], at: np.ndarray, h: float = 1e-6) -> np.ndarray:
    out = np.zeros_like(at)
    for k in np.ndindex(at.shape):
        for sign in (1, -1):
            moved = at.copy()
            moved[k] += sign * h
            out[k] += sign * f(moved) / (2 * h)
    return out


GRADIENTS: dict[str, Callable[[Any, Any], Any]] = {
    "mask": lambda y, k: sc.sum(sc.sin(y[y > 0.1]) ** 2),
    "slice": lambda y, k: sc.sum(y[k:] ** 3) * y[0],
    "window": lambda y, k: sc.sum(sc.exp(y[k:k + 3:2])),
    "backwards": lambda y, k: sc.sum(sc.cumsum(y[k::-1]) ** 2),
    "repeat": lambda y, k: sc.sum(sc.repeat(y, sc.arange(7) % k) ** 3),
    "unique": lambda y, k: sc.sum(sc.unique(y) * sc.arange(y.shape[0])),
    "nested": lambda y, k: sc.sum(y[y > 0][:k] ** 2),
    "scan": lambda y, k: sc.scan(lambda c, _: (c * y[1] + 1, None), y[0], length=k)[0],
    "until": lambda y, k: sc.sum(sc.scan(lambda c, x: (c + x * c, c), 1.0, y, until=lambda c, s: c > 2)[1]),
    "sizes": lambda y, k: sc.sum(y) / y[y > 0].shape[0],
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name: str) -> None:
    value = GRADIENTS[name](Y, K)
    f = sc.compile([value, sc.grad(value, Y)], [Y, K])
    for k in (2, 3):
        np.testing.assert_allclose(f(A, k)[1], differences(lambda a, k=k: f(a, k)[0], A), rtol=1e-5, atol=1e-7)


def test_second_derivatives_and_forward_mode() -> None:
    f = sc.compile(sc.hessian(sc.sum(Y[Y > 0] ** 3), Y), [Y])
    np.testing.assert_allclose(f(A), np.diag(6 * np.maximum(A, 0)), rtol=1e-12)
    f = sc.compile(sc.jacobian(Y[Y > 0] ** 2, Y), [Y])
    np.testing.assert_allclose(f(A), np.diag(2 * A)[A > 0], rtol=1e-12)


def test_a_minibatch_as_theano_writes_it() -> None:
    data, w, i = sc.shared(M, "data"), sc.shared(np.zeros(3), "w"), sc.input("i", "int64", ())
    loss = sc.mean((X @ w - 1) ** 2)
    step = sc.compile(loss, [i], updates={w: w - 0.1 * sc.grad(loss, w)}, givens={X: data[i * 4:(i + 1) * 4]})
    mine = np.zeros(3)
    for k in (0, 1, 0, 1):
        batch = M[k * 4:(k + 1) * 4]
        assert np.isclose(step(k), np.mean((batch @ mine - 1) ** 2))
        mine -= 0.1 * 2 * batch.T @ (batch @ mine - 1) / len(batch)
        np.testing.assert_allclose(w.get_value(), mine, rtol=1e-12)
    swapped = step.copy(swap={w: sc.shared(np.ones(3), "w2")})
    assert swapped(0) == pytest.approx(np.mean((M[:4] @ np.ones(3) - 1) ** 2))


def test_jit_deferred_functions_and_numpys_names() -> None:
    np.testing.assert_array_equal(sc.jit(lambda a: a[a > 0] * 2)(A), A[A > 0] * 2)
    np.testing.assert_array_equal(sc.jit(lambda a, n: np.unique(a.round())[:n])(A, 2), np.unique(A.round())[:2])
    v, n = sc.Variable("v"), sc.Variable("n")
    f = sc.compile(v[:n])
    for array in (A, M.astype("f4")):
        assert_same(f(v=array, n=2), array[:2])


def test_batches_take_sizes_from_outside_alone() -> None:
    f = sc.compile(sc.vmap(lambda r: sc.sum(r[:K]))(X), [X, K])
    np.testing.assert_allclose(f(M, 2), M[:, :2].sum(1))
    f = sc.compile(sc.scan(lambda c, r: (c + sc.sum(r[:K]), None), 0.0, X)[0], [X, K])
    assert f(M, 2) == pytest.approx(M[:, :2].sum())
    inner: list[Callable[[], Any]] = [
        lambda: sc.vmap(lambda r: sc.sum(r[r > 0]))(X),
        lambda: sc.scan(lambda c, r: (c + sc.sum(r[r > 0]), None), 0.0, X)[0],
        lambda: sc.while_loop(lambda c: c < 9, lambda c: c + sc.sum(sc.arange(sc.astype(c, "int64"))), 1.0),
    ]
    for make in inner:
        with pytest.raises(sc.InputError, match="in every step of the loop, or for every entry of the batch") as e:
            sc.compile(make(), None)
        assert "test_measured_sizes.py" in str(e.value)


MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "negative": (lambda: sc.compile(sc.zeros(K - 5), [K])(2), sc.ShapeError, "the size -3 is negative"),
    "too large": (lambda: sc.compile(sc.zeros(K), [K])(2**61), sc.ShapeError, "does not fit in 64 bits"),
    "a float": (lambda: sc.zeros(Y[0]), sc.ShapeError, "must be an integer or a size"),
    "a bool": (lambda: sc.zeros(Y[0] > 0), sc.ShapeError, "must be an integer or a size"),
    "a float bound": (lambda: Y[:Y[0]], sc.IndexingError, "must be an integer scalar"),
    "a step": (lambda: Y[::K], sc.IndexingError, "step of a slice must be a number"),
    "a mask of another size": (lambda: sc.compile(Y[B], [Y, B])(A, A[:3] > 0), sc.ShapeError,
                               r"y.shape\[0\] = 7 must equal b.shape\[0\] = 3"),
    "sizes that differ": (lambda: sc.compile(Y[Y > 0] + X[:, 0], [Y, X])(A, M), sc.ShapeError, "must equal"),
    "negative counts": (lambda: sc.compile(sc.repeat(I, I), [I])(N - 3), sc.IndexingError, "out of bounds"),
    "no last element": (lambda: sc.compile(Y[Y > 0][-1], [Y])(-abs(A)), sc.IndexingError, "must be at least 1"),
    "an index": (lambda: sc.compile(Y[sc.arange(K)], [Y, K])(A, 8), sc.IndexingError, "index 7 is out of bounds"),
    "comparing": (lambda: Y[Y > 0].shape[0] == 3, sc.SymbolicValueError, "not known while the graph is built"),
    "a budget": (lambda: sc.compile(Y[Y > 0], [Y], max_bytes="1MB"), sc.InputError, "max_bytes= needs sizes"),
    "a pickle of the graph": (lambda: pickle.dumps(Y[Y > 0]), sc.SymbolicValueError, "compile it first"),
    "out": (lambda: sc.compile(Y[Y > 0], [Y])(A, out=np.zeros(100)), sc.ShapeError, "the result has"),
    "a missing argument": (lambda: sc.compile(Y[:K], [Y, K])(A), sc.InputError, "missing input 'k'"),
    "slices of unknown length": (lambda: sc.unique(sc.matrix("m"), axis=0), sc.ShapeError, "must be a number"),
    "nonzero of a scalar": (lambda: sc.nonzero(K), sc.ShapeError, "scalar"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name: str) -> None:
    make, error, words = MISTAKES[name]
    with pytest.raises(error, match=words):
        make()


def test_what_is_asked_of_a_chain() -> None:
    f = sc.compile({"kept": Y[Y > 0], "all": sc.sum(Y)}, [Y], name="chain")
    again = pickle.loads(pickle.dumps(f))
    for g in (f, again):
        assert_same(g(A)["kept"], A[A > 0])
    assert_same(f(y=list(A))["kept"], A[A > 0])
    out = {"kept": np.zeros((A > 0).sum()), "all": np.zeros(())}
    assert f(A, out=out)["kept"] is out["kept"]
    assert_same(out["kept"], A[A > 0])
    assert [i.name for i in f.inputs] == ["y"] and "u0" in f.dump() and f.dump().count("func @chain") == 2
    assert f.plan.count("plan @chain") == 2 and len(f.kernels) >= 2 and f.compile_count <= len(f.kernels)
    assert f.memory(A) > 0 and f.trace(A) and "us" in str(f.profile(A)) + "us" and "2 functions" in repr(f)


def test_every_function_of_a_chain_is_shown() -> None:
    kept = Y[Y > 0]
    f = sc.compile([sc.sum(kept[kept > sc.mean(kept)]), sc.exp(Y)], [Y], name="chain")
    titles = [title for title, _ in f.parts]
    assert titles == ["the size u0", "the size u1", "with these sizes"]
    for text in (f.dump(), f.plan, f.explain()):
        assert [line[3:] for line in text.splitlines() if line.startswith("// ")] == titles
    profile = f.profile(A)
    assert len(profile) >= 3 and {"places"} <= {r.step for r in profile}
    assert sorted(r.step for r in profile) == sorted(
        r.step for (_, part), arrays in zip(f.parts, f._extended((A,), {}), strict=True) for r in part.profile(*arrays))
    indices = [e[0] for e in profile._events]
    assert max(indices) == len(profile) - 1 and min(indices) == 0
    assert f.memory(A) == max(part.memory(*a) for (_, part), a in zip(f.parts, f._extended((A,), {}), strict=True))
    assert_same(f.trace(A)["kept"], A[A > 0])


def test_chains_are_linted() -> None:
    kept = Y[Y > 0]
    late = kept[kept > sc.mean(kept)]
    for x in (kept, late):
        assert not sc.lint(sc.sum(x))
        (found,) = sc.lint(sc.sin(x + 1e6) - sc.sin(x))
        assert "test_measured_sizes.py" in str(found) and "digits" in str(found)
    assert "float64 arises" in str(sc.lint(sc.vector("f", "float32")[sc.vector("g", "float32") > 0] * np.arange(2.0)))


def test_chains_in_files(tmp_path) -> None:
    w = sc.shared(np.array([1.0, 2.0, 3.0]), "w")
    t = sc.scalar("t", default=0.5)
    kept = Y[t < Y]
    f = sc.compile({"a": sc.sum(kept[kept > sc.mean(kept)]), "b": sc.unique(w[w > t])}, {"y": Y, "t": t},
                   updates={w: w + 0.5}, name="chain", specialize={"_0": [7]})
    f.save(tmp_path / "f")
    g = sc.load(tmp_path / "f")
    for k in range(3):
        one, two = (h(A + k) for h in (f, g))
        assert_same(one["a"], two["a"])
        assert_same(one["b"], two["b"])
    assert g.shared["w"].get_value().tolist() == [2.5, 3.5, 4.5] and g.name == "chain"
    assert [c for _, part in g.parts for c in part._cells] and len({c for _, part in g.parts for c in part._cells}) == 1
    with pytest.raises(sc.ShapeError, match="negative") as e:
        sc.compile(sc.zeros(K), [K]).save(tmp_path / "z")
        sc.load(tmp_path / "z")(-3)
    assert "test_measured_sizes.py" in str(e.value)


@pytest.mark.parametrize("shape, dtype, axis", [((7, 3), "f8", 0), ((3, 7), "f8", 1), ((5, 2, 2), "i4", 0),
    ((2, 4, 2), "f4", -2), ((0, 3), "f8", 0), ((3, 0), "f8", 0), ((6, 2), "c16", 0), ((8, 2), "?", 0)])  # fmt: skip
def test_distinct_slices(shape, dtype, axis) -> None:
    a = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    if dtype == "f8" and a.size:
        a.flat[0], a.flat[2] = np.nan, -0.0
    x = sc.input("x", dtype, tuple(None if k == axis % len(shape) else n for k, n in enumerate(shape)))
    more = dict.fromkeys(["return_index", "return_inverse", "return_counts"], True)
    for got, want in zip(sc.compile(sc.unique(x, axis=axis, **more), [x])(a), np.unique(a, axis=axis, **more)):
        assert_same(got, want)
    assert_same(sc.compile(sc.unique(x, axis=axis), [x])(a), np.unique(a, axis=axis))


def _damaged(data: bytes, change) -> bytes:
    """The file of a chain with another list of members' bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for name, content in change({n: old.read(n) for n in old.namelist()}).items():
            new.writestr(name, content)
    return out.getvalue()


def _meta(members, **new):
    return {**members, "meta.json": json.dumps({**json.loads(members["meta.json"]), **new}).encode()}


@pytest.mark.parametrize("change", [
    lambda m: {k: v for k, v in m.items() if k != "part1.symc"}, lambda m: {**m, "code.py": b"1"},
    lambda m: {**m, "part0.symc": m["part1.symc"]}, lambda m: {**m, "part1.symc": m["part0.symc"]},
    lambda m: _meta(m, format=7), lambda m: _meta(m, cells=[]), lambda m: _meta(m, slots=[]),
    lambda m: _meta(m, stages=[]), lambda m: _meta(m, stages=[[2, [[], []]]]), lambda m: _meta(m, stages=[[-1, []]]),
    lambda m: {**m, "meta.json": b"[]"}, lambda m: {**m, "state.npz": b""}, lambda m: {**m, "part0.symc": b"PK"},
])  # fmt: skip
def test_damaged_files_of_chains(change, tmp_path) -> None:
    w = sc.shared(np.ones(2), "w")
    f = sc.compile([Y[Y > 0], sc.sum(w)], [Y], updates={w: w + 1})
    f.save(tmp_path / "f")
    (tmp_path / "g").write_bytes(_damaged((tmp_path / "f").read_bytes(), change))
    with pytest.raises(sc.InputError, match="not a saved function"):
        sc.load(tmp_path / "g")


def test_graphs_of_sizes_go_with_their_values() -> None:
    """What a size is made of is kept by what has the size, and by nothing else."""
    v = sc.vector("v")
    z = (v * 2)[v > 0]
    number = weakref.ref(z.value)
    f = sc.compile(z, [v])
    f(A)
    del z, f
    gc.collect()
    assert number() is None


def test_a_state_does_not_change_between_the_functions() -> None:
    """Another thread sets a state while a chain counts with it, then reads it."""
    s = sc.shared(np.arange(1000.0), "s")
    f, stop, errors = sc.compile(sc.sum(s[s > 500]), []), threading.Event(), []

    def change() -> None:
        k = 0
        while not stop.is_set():
            k += 1
            s.set_value(np.arange(1000.0) * (k % 2))

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(2000):
            total = f()
            if total not in (0.0, np.arange(501, 1000).sum()):
                errors.append(total)
    finally:
        stop.set()
        thread.join()
    assert not errors


def test_inputs_that_are_found():
    x, z = sc.input("x", shape=("n", 3)), sc.input("z", shape=("k", 3))
    y, a = x[x[:, 0] > 0], np.array([[1.0, 2, 3], [-1, 2, 3], [4, 5, 6]])
    for _ in range(2):
        np.testing.assert_array_equal(sc.compile(y)(a), a[[0, 2]])
        np.testing.assert_array_equal(sc.compile(y, givens={x: z - 2})(z=a), a[[2]] - 2)


SPACES = {
    "linspace": lambda xp, n: xp.linspace(1 / 3, 7.1, n), "falling": lambda xp, n: xp.linspace(5.3, 0.1, n),
    "integers": lambda xp, n: xp.linspace(0, 10, n, dtype="int64"), "open": lambda xp, n: xp.linspace(0, 1.1, n, False),
    "geomspace": lambda xp, n: xp.geomspace(0.3, 77.7, n), "logspace": lambda xp, n: xp.logspace(0.3, 1.7, n),
}


@pytest.mark.parametrize("name", SPACES)
def test_ends_of_so_many_points_are_those_of_numpy(name):
    n = sc.input("n", "int64", ())
    f = sc.compile(SPACES[name](sc, n), [n], mode="reference")
    for count in (0, 1, 2, 3, 7, 49, 50, 63):
        got, want = f(count), SPACES[name](np, count)
        np.testing.assert_allclose(got, want, rtol=1e-14)
        np.testing.assert_array_equal(got[:1], want[:1])
        np.testing.assert_array_equal(got[-1:], want[-1:])


VALUES = {
    "normal": np.random.default_rng(0).normal(size=300), "integers": np.arange(50) % 9, "equal": np.ones(5),
    "one": np.array([3.0]), "matrix": np.random.default_rng(1).exponential(size=(7, 9)), "two": np.array([1.0, 2.0]),
    "bytes": (np.arange(90) * 37 % 250).astype("u1"), "single": np.random.default_rng(2).normal(size=120).astype("f4"),
}


@pytest.mark.parametrize("rule", ["auto", "fd", "doane", "scott", "rice", "sturges", "sqrt"])
def test_rules_for_the_number_of_bins_are_those_of_numpy(rule):
    f = sc.jit(lambda x: np.histogram(x, bins=rule), mode="reference")
    edges = sc.jit(lambda x: np.histogram_bin_edges(x, rule, (0.2, 1.5)), mode="reference")
    for x in VALUES.values():
        counts, at = np.histogram(x, bins=rule)
        np.testing.assert_array_equal(f(x)[0], counts)
        np.testing.assert_allclose(f(x)[1], at, rtol=1e-6 if x.dtype == "f4" else 1e-13)
    for name in ("normal", "matrix"):
        np.testing.assert_allclose(edges(VALUES[name]), np.histogram_bin_edges(VALUES[name], rule, (0.2, 1.5)))


def test_rules_that_are_not_known_are_refused():
    for bins, weights, why in (("stone", None, "no rule"), ("auto", VALUES["normal"], "no weights")):
        with pytest.raises(sc.errors.InputError, match=why):
            sc.jit(lambda x, bins=bins, weights=weights: np.histogram(x, bins, weights=weights))(VALUES["normal"])


@pytest.mark.parametrize("made, most", [
    (lambda x: x.astype("uint8"), 256), (lambda x: x % 7, 7), (lambda x: sc.clip(x, 0, 9), 10), (lambda x: x & 31, 32),
    (lambda x: (x & 15) << 2, 61), (lambda x: (x & 12) | 3, 16), (lambda x: (x & 255) >> 4, 16), (lambda x: x > 3, 2),
    (lambda x: (x & 3) * 4 + (x & 3), 16),
])
def test_the_length_of_counts_is_no_data_where_the_integers_tell_it(made, most):
    x = sc.input("x", "int64", shape=("n",))
    for more, measured in ((0, False), (5, False), (-1, True)):
        f = sc.compile(sc.bincount(made(x), minlength=most + more), [x])
        assert ("with these sizes" in str(f)) == measured
        data = np.random.default_rng(0).integers(0, 200, 300)
        known = sc.compile(made(x), [x], mode="reference")(data)
        np.testing.assert_array_equal(f(data), np.bincount(known, minlength=most + more))
