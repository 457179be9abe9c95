"""Several threads: the same bits for any number of them, when they are used, and what must not disturb them."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time

import numpy as np
import pytest

import symc as sc
from symc.runtime.cpu.blas_library import library
from symc.runtime.cpu.native.pool import counted, words
from symc.runtime.cpu.native.pool_words import MOST_THREADS, Pool
from symc.runtime.threads import VARIABLE, processors, threads_of

COUNTS = (1, 2, 3, 8)


def launches(f, *args) -> int:
    """How many launches a call has the pool for."""
    before = counted(Pool.LAUNCHES)
    f(*args)
    return counted(Pool.LAUNCHES) - before


def check_same(make, *args, parallel: int | None = 1) -> list[np.ndarray]:
    """The results have the same bits for any number of threads; with several the pool is used so often, or at all."""
    results = []
    for n in COUNTS:
        f = make(n)
        results.append(f(*args))
        times = launches(f, *args)
        assert times == (parallel if n > 1 else 0) if parallel is not None or n == 1 else times > 0, n
    for other in results[1:]:
        for a, b in zip(flat(results[0]), flat(other), strict=True):
            assert a.dtype == b.dtype and a.tobytes() == b.tobytes()
    return flat(results[0])


def flat(x) -> list[np.ndarray]:
    return [x] if isinstance(x, np.ndarray) else [a for part in x for a in flat(part)]


def arrays(*shapes, dtype="float64", seed=0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(s).astype(dtype) for s in shapes]


def maker(outputs, **options):
    return lambda n: sc.compile(outputs, threads=n, **options)


# --- kernels: the templates -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [199_999, 200_000, 200_001 + 1024])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_map(n, dtype):
    x = sc.vector("x", dtype)
    check_same(maker(sc.tanh(x) * sc.exp(x) + sc.log1p(x * x)), *arrays(n, dtype=dtype))


def test_a_map_of_more_axes_that_cannot_be_merged():
    x, y = sc.matrix("x"), sc.matrix("y")
    check_same(maker(sc.tanh(x.T) + y), *arrays((500, 301), (301, 500)))


@pytest.mark.parametrize("shape", [(801, 300), (7, 40_000)])
def test_rows_with_statistics(shape):
    x = sc.matrix("x")
    e = sc.exp(x - sc.max(x, axis=1, keepdims=True))
    (y,) = check_same(maker(e / sc.sum(e, axis=1, keepdims=True)), *arrays(shape))
    np.testing.assert_allclose(y.sum(axis=1), 1)


def test_sums_and_places_of_rows():
    x = sc.matrix("x")
    check_same(maker((sc.sum(sc.exp(x), axis=1), sc.argmax(sc.exp(x), axis=1))), *arrays((900, 400)))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int16"])
@pytest.mark.parametrize("of", [sc.sort, sc.argsort, sc.argmax])
def test_places_of_rows(of, dtype):
    """Lines that are sorted, and looked through for an extreme."""
    x = sc.matrix("x", dtype)
    (data,) = arrays((900, 700))
    data = (data * 1000).astype(dtype)
    (found,) = check_same(maker(of(x, axis=1)), data)
    want = {"sort": np.sort, "argsort": np.argsort, "argmax": np.argmax}[of.__name__]
    np.testing.assert_array_equal(found, want(data, axis=1, **({} if of is sc.argmax else {"kind": "stable"})))
    assert launches(sc.compile(of(x, axis=1), threads=2), data[:9]) == 0


@pytest.mark.parametrize("shape", [(300, 1500), (40, 8001)])
def test_sums_of_columns(shape):
    x = sc.matrix("x")
    check_same(maker(sc.sum(sc.exp(x), axis=0)), *arrays(shape))


@pytest.mark.parametrize("n", [131_072, 200_001])
def test_sums_of_everything_are_made_in_blocks(n):
    x = sc.vector("x")
    data = arrays(n)[0]
    y, top, low = check_same(maker((sc.sum(sc.exp(x)), sc.max(sc.sin(x)), sc.min(sc.cos(x)))), data, parallel=None)
    np.testing.assert_allclose(y, np.exp(data).sum(), rtol=1e-13)
    np.testing.assert_allclose([top, low], [np.sin(data).max(), np.cos(data).min()], rtol=1e-14)


def test_sums_of_everything_over_several_axes():
    x, u = sc.tensor3("x"), sc.vector("u")
    data = arrays((30, 50, 400), (400,))
    (y,) = check_same(maker(sc.sum(sc.exp(x * u))), *data)
    np.testing.assert_allclose(y, np.exp(data[0] * data[1]).sum(), rtol=1e-13)


def test_a_loss_and_its_gradient_in_one_pass():
    x, w = sc.matrix("x"), sc.matrix("w")
    loss = sc.mean((sc.tanh(x) - w) ** 2)
    check_same(maker((loss, sc.grad(loss, [x])[0])), *arrays((600, 700), (600, 700)))


@pytest.mark.parametrize("dtype", ["float16", "int32", "bool"])
def test_sums_of_other_numbers(dtype):
    x = sc.vector("x", dtype)
    data = np.random.default_rng(0).integers(0, 2, 20_000_000 if dtype == "bool" else 4_000_000).astype(dtype)
    outputs = (sc.any(x), sc.all(x)) if dtype == "bool" else (sc.sum(x * x + x), sc.max(x * x))
    check_same(maker(outputs), data, parallel=None)


def test_the_place_of_a_maximum_of_everything_is_found_by_one_thread():
    x = sc.vector("x")
    data = arrays(300_000)[0]
    f = sc.compile(sc.argmax(sc.exp(x)), threads=3)
    assert f(data) == np.argmax(data) and "last" not in f.source


def test_sums_over_a_middle_axis():
    x = sc.tensor3("x")
    check_same(maker(sc.sum(sc.exp(x), axis=1)), *arrays((40, 50, 130)))


def test_loops_that_are_cut_where_a_condition_changes():
    x, y = sc.vector("x"), sc.vector("y")
    (z,) = check_same(maker(sc.concatenate([sc.exp(x), sc.tanh(y)])), *arrays(150_001, 100_003), parallel=None)
    assert z.shape == (250_004,)


def test_gathers():
    x, k = sc.vector("x"), sc.vector("k", "int64")
    data, places = *arrays(5000), np.random.default_rng(1).integers(0, 5000, 1_000_000)
    (y,) = check_same(maker(sc.exp(x[k])), data, places, parallel=1)  # indices are looked at where they are used
    np.testing.assert_allclose(y, np.exp(data[places]), rtol=1e-14)


def test_running_sums_along_rows_are_divided_and_down_columns_are_not():
    x = sc.matrix("x")
    check_same(maker(sc.cumsum(sc.exp(x), axis=1)), *arrays((600, 500)))
    check_same(maker(sc.cumsum(sc.exp(x), axis=0)), *arrays((600, 500)), parallel=0)


def test_updates_at_places_that_may_be_equal_stay_on_one_thread():
    x, k = sc.vector("x"), sc.vector("k", "int64")
    y = sc.zeros(50).at[k].add(sc.exp(x))
    places = np.random.default_rng(2).integers(0, 50, 1_000_000)
    data = arrays(1_000_000)[0]
    (found,) = check_same(maker(y), data, places, parallel=0)
    np.testing.assert_allclose(found, np.bincount(places, np.exp(data), 50), rtol=1e-12)


def test_a_gradient_of_many_kernels():
    x, w = sc.matrix("x"), sc.matrix("w")
    loss = sc.mean(sc.softplus(sc.tanh(x) * w))
    found = [f.tobytes() for f in flat([sc.compile(sc.grad(loss, [x, w]), threads=n)(*arrays((700, 400), (700, 400)))
                                        for n in COUNTS])]
    assert len(set(found[::2])) == len(set(found[1::2])) == 1


def test_numbers_kept_in_half_precision_and_truths():
    x = sc.vector("x", "float16")
    check_same(maker((sc.exp(x), sc.tanh(x) > 0)), *arrays(300_001, dtype="float16"))


def test_complex_numbers_which_numba_compiles():
    x = sc.vector("x", "complex128")
    data = arrays(200_000)[0] + 1j * arrays(200_000, seed=1)[0]
    check_same(maker(sc.exp(x) * x), data)


def test_in_place():
    x = sc.vector("x")
    data = arrays(200_000)[0]
    found = [sc.compile(sc.exp(x), donate=(x,), threads=n)(data.copy()).tobytes() for n in COUNTS]
    assert len(set(found)) == 1


def test_a_loop_whose_steps_are_divided():
    x = sc.vector("x")
    data = arrays(100_000)

    def make(n):
        final, _ = sc.scan(lambda c, _: (sc.sin(c) + sc.tanh(c), None), x, length=5)
        return sc.compile(final, threads=n)

    check_same(make, *data, parallel=5)


# --- products ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("tb", [False, True])
def test_rows_of_products(dtype, ta, tb):
    a, b = sc.matrix("a", dtype), sc.matrix("b", dtype)
    m, n, k = 701, 203, 301
    data = arrays((k, m) if ta else (m, k), (n, k) if tb else (k, n), dtype=dtype)
    (c,) = check_same(maker((a.T if ta else a) @ (b.T if tb else b)), *data)
    want = (data[0].T if ta else data[0]).astype("f8") @ (data[1].T if tb else data[1])
    np.testing.assert_allclose(c, want, atol=1e-3 if dtype == "float32" else 1e-11)


@pytest.mark.usefixtures("each_library")
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize("m, n, k", [(128, 784, 512), (1023, 257, 257), (300, 500, 100)])
def test_rows_of_products_of_many_shapes(dtype, m, n, k):
    a, b = sc.matrix("a", dtype), sc.matrix("b", dtype)
    check_same(maker(a @ b), *arrays((m, k), (k, n), dtype=dtype))


def test_a_product_that_adds_in_place():
    a, b, c = sc.matrix("a"), sc.matrix("b"), sc.matrix("c")
    y = 0.5 * c + 2.0 * (a @ b)
    data = arrays((600, 300), (300, 250), (600, 250))
    (found,) = check_same(maker(y), *data)
    np.testing.assert_allclose(found, 0.5 * data[2] + 2 * data[0] @ data[1], atol=1e-11)


@pytest.mark.usefixtures("each_library")
@pytest.mark.parametrize("shared", [False, True])
def test_products_of_a_batch(shared):
    a, b = sc.tensor3("a"), sc.matrix("b") if shared else sc.tensor3("b")
    y = a @ b
    data = arrays((12, 64, 80), (80, 96) if shared else (12, 80, 96))
    (found,) = check_same(maker(y), *data)
    np.testing.assert_allclose(found, data[0] @ data[1], atol=1e-11)


@pytest.mark.usefixtures("each_library")
def test_blas_has_one_thread_while_a_function_runs_and_its_own_number_after():
    assert library().threads is not None
    get, put = library().threads
    before, seen = get(), []
    put(2)
    try:
        a = sc.matrix("a")

        @sc.op
        def threads_seen(x):
            seen.append(get())
            return x * 1.0

        f = sc.compile(threads_seen(a @ a) @ a, threads=1)
        seen.clear()
        for threads in (2, 3):
            put(threads)
            f(*arrays((64, 64)))
            assert get() == threads
        assert seen == [1, 1]
    finally:
        put(before)


@pytest.mark.usefixtures("each_library")
def test_blas_gets_its_number_back_after_an_error():
    assert library().threads is not None
    get, put = library().threads
    before = get()
    put(2)
    try:
        a = sc.matrix("a")

        @sc.op
        def fails_on_large(x):
            if x.size > 100:
                raise ValueError("large")
            return x * 1.0

        f = sc.compile(fails_on_large(a @ a), threads=1)
        with pytest.raises(sc.SymcError):
            f(*arrays((64, 64)))
        assert get() == 2
    finally:
        put(before)


# --- when -------------------------------------------------------------------------------------------------------------


def test_threads_are_used_from_a_length_on_that_is_known_before():
    x = sc.vector("x")
    f = sc.compile(sc.exp(x), threads=2)
    assert launches(f, *arrays(1000)) == 0
    assert launches(f, *arrays(1_000_000)) == 1
    assert launches(sc.compile(x + 1, threads=2), *arrays(100_000)) == 0


def test_a_kernel_of_known_small_size_has_no_pieces():
    x = sc.vector("x", shape=(100,))
    f = sc.compile(sc.exp(x), threads=2)
    assert "begin" not in f.source and "range(100)" in f.source
    assert "range(begin, end)" in sc.compile(sc.exp(sc.vector("x"))).source


def test_a_function_of_a_user_is_called_by_one_thread():
    @sc.op(numba=lambda x: x * x + 1.0)
    def square_and_one(x):
        return x * x + 1.0

    x = sc.vector("x")
    f = sc.compile(square_and_one(sc.exp(x)), threads=3)
    data = arrays(500_000)[0]
    assert launches(f, data) == 0 and "begin" not in f.source
    np.testing.assert_allclose(f(data), np.exp(data) ** 2 + 1)


def test_one_long_row_is_one_piece():
    x = sc.matrix("x")
    e = sc.exp(x)
    f = sc.compile(e / sc.sum(e, axis=1, keepdims=True), threads=2)
    assert launches(f, *arrays((1, 400_000))) == 0


def test_the_number_of_threads(monkeypatch):
    assert threads_of(3) == 3 and threads_of(10**6) == MOST_THREADS
    monkeypatch.delenv(VARIABLE, raising=False)
    assert threads_of(None) == processors() >= 1
    monkeypatch.setenv(VARIABLE, "5")
    assert threads_of(None) == 5 and threads_of(2) == 2
    for wrong in ("0", "-1", "many"):
        monkeypatch.setenv(VARIABLE, wrong)
        with pytest.raises(sc.InputError, match=VARIABLE):
            threads_of(None)


def test_no_more_threads_than_a_call_may_use():
    x = sc.vector("x")
    data = arrays(300_000)
    sc.compile(sc.exp(x), threads=6)(*data)
    made = counted(Pool.THREADS)
    assert made >= 5
    sc.compile(sc.exp(x), threads=2)(*data)
    assert counted(Pool.THREADS) == made


# --- what must not disturb --------------------------------------------------------------------------------------------


def test_eight_callers_at_once():
    x, w = sc.matrix("x"), sc.matrix("w")
    f = sc.compile(sc.tanh(x @ w) * sc.exp(x), threads=3)
    data = [arrays((300, 200), (200, 200), seed=s) for s in range(8)]
    want = [f(*d) for d in data]
    wrong = []

    def call(k):
        for _ in range(20):
            if f(*data[k]).tobytes() != want[k].tobytes():
                wrong.append(k)

    callers = [threading.Thread(target=call, args=(k,)) for k in range(8)]
    for c in callers:
        c.start()
    for c in callers:
        c.join()
    assert not wrong


def test_an_index_that_is_no_place_is_said_whatever_piece_it_is_in():
    x, k = sc.vector("x"), sc.vector("k", "int64")
    f = sc.compile(sc.exp(x[k]), threads=3)
    data, places = arrays(100)[0], np.zeros(1_000_000, np.int64)
    assert launches(f, data, places) == 1
    for wrong in (0, 377_777, 999_999):
        bad = places.copy()
        bad[wrong] = 100
        with pytest.raises(sc.SymcError, match="100"):
            f(data, bad)
        np.testing.assert_allclose(f(data, places), np.exp(data[0]), rtol=1e-14)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_has_threads_of_its_own():
    x = sc.vector("x")
    f = sc.compile(sc.exp(x), threads=3)
    data = arrays(300_000)[0]
    want = f(data).tobytes()
    child = os.fork()
    if child == 0:
        good = False
        try:
            good = all(f(data).tobytes() == want for _ in range(5)) and counted(Pool.THREADS) == 2
        finally:
            os._exit(0 if good else 1)
    for _ in range(600):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.1)
    else:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        pytest.fail("the child hangs")
    assert status == 0
    assert f(data).tobytes() == want


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_fork_waits_until_blas_has_been_told_its_number_of_threads():
    """BLAS has a lock of its own then, which nobody would give back in the child."""
    x = sc.matrix("x")
    f = sc.compile(x @ x.T, threads=2)
    f(np.ones((300, 300)))
    sc.compile(sc.exp(x), threads=2)(np.ones((300, 3000)))  # this process has a pool
    libc, lock = ctypes.CDLL(None), ctypes.c_void_p(ctypes.addressof(words()) + 8 * Pool.BLAS_LOCK)
    held, told = threading.Event(), []

    def tell() -> None:
        libc.pthread_mutex_lock(lock)
        held.set()
        time.sleep(0.3)
        told.append(True)
        libc.pthread_mutex_unlock(lock)

    thread = threading.Thread(target=tell)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        os._exit(0 if told else 1)
    assert os.waitpid(child, 0)[1] == 0
    thread.join()
    f(np.ones((300, 300)))


def test_an_interrupt_stops_a_loop_whose_steps_are_divided(interrupt):
    x = sc.vector("x")
    final, _ = sc.scan(lambda c, _: (sc.sin(c) + sc.tanh(c), None), x, length=10**7)
    f = sc.compile(final, threads=2)
    data = arrays(100_000)[0]
    interrupt(0.5)
    with pytest.raises(KeyboardInterrupt):
        f(data)


def test_a_saved_function_keeps_its_number_of_threads(tmp_path):
    x = sc.vector("x")
    path = tmp_path / "f.symc"
    sc.compile(sc.exp(x), threads=2).save(path)
    assert launches(sc.load(path), *arrays(300_000)) == 1
