"""Calls that native code serves: the same results, errors and lifetimes as the way in Python."""

from __future__ import annotations

import collections
import copy
import dataclasses
import gc
import inspect
import pathlib
import pickle
import sys
import threading
import weakref

import numpy as np
import pytest

import symc as sc
from symc.runtime.cpu import entry
from symc.runtime.cpu.large_results import LARGE

NATIVE = entry.supported() is not None
RNG = np.random.default_rng(0)


@dataclasses.dataclass
class Pair:
    left: object
    right: object


Named = collections.namedtuple("Named", "a b")


def served(f, *args):
    """``f``, called until native code serves such calls; whether it does is seen by what is called."""
    f(*args)
    f(*args)
    assert not NATIVE or type(f.__call__) is type(len), "native code does not serve this"
    return f


def watched(f, monkeypatch):
    """A list of the calls that come to Python."""
    seen = []
    arrays = f._signature.arrays

    def look(args, kwargs):
        seen.append((args, kwargs))
        return arrays(args, kwargs)

    monkeypatch.setattr(f._signature, "arrays", look)
    return seen


def two():
    a, b = sc.input("a", "float64", shape=("n",)), sc.input("b", "float64", shape=("n",))
    return a, b


def test_this_machine_has_native_calls():
    assert (sys.implementation.name == "cpython" and getattr(sys, "_is_gil_enabled", lambda: True)()) == NATIVE


def test_the_second_call_does_not_come_to_python(monkeypatch):
    a, b = two()
    f = sc.compile(a * b + 1.0, [a, b])
    seen = watched(f, monkeypatch)
    for k in range(5):
        x, y = RNG.normal(size=10), RNG.normal(size=10)
        found = f(x, y)
        assert np.allclose(found, x * y + 1.0) and type(found) is np.ndarray and found.flags.owndata
        assert len(seen) == (1 if NATIVE else k + 1)


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "int64", "int8", "uint16", "bool"])
def test_dtypes_and_ranks(dtype):
    for shape, dims in (((), ()), ((0,), ("n",)), ((3,), ("n",)), ((2, 3), ("n", 3)), ((2, 0, 4), ("n", "m", "k"))):
        x = sc.input("x", dtype, shape=dims)
        f = sc.compile(sc.where(x == x, x, x), [x]) if dtype == "bool" else sc.compile(x + x, [x])
        data = RNG.integers(0, 2, shape).astype(dtype)
        wanted = f(data)
        served(f, data)
        for _ in range(3):
            found = f(data)
            assert found.dtype == wanted.dtype == np.dtype(dtype) and found.shape == shape
            assert np.array_equal(found, wanted) and found is not data and not np.shares_memory(found, data)


def test_nests_of_results():
    a, b = two()
    x, y = np.arange(3.0), np.arange(3.0) + 5
    for nest in ((a * b,), (a * b, a - b), [a * b, a - b], {"p": a * b, "q": (a - b, None)}, Pair(a - b, [a * b]),
                 Named(a - b, a * b)):
        f = sc.compile(nest, [a, b])
        wanted = f(x, y)
        served(f, x, y)
        found = f(x, y)
        assert type(found) is type(wanted) and repr(found) == repr(wanted)


def test_a_result_that_is_an_argument_or_comes_twice_is_an_array_of_its_own():
    a, b = two()
    f = sc.compile((a, a * b, a * b, a), [a, b])
    x, y = np.arange(4.0), np.ones(4)
    for _ in range(5):
        found = f(x, y)
        assert not any(np.shares_memory(r, x) for r in found) and np.array_equal(found[0], x)


def test_what_is_no_plain_array_goes_the_other_way(monkeypatch):
    a, b = two()
    f = sc.compile(a * b, [a, b])
    x, y = np.arange(6.0), np.arange(6.0) + 1
    served(f, x, y)
    seen = watched(f, monkeypatch)
    unaligned = np.zeros(6 * 8 + 1, np.uint8)[1:].view("float64")
    unaligned[:] = x
    class Sub(np.ndarray):
        pass
    others = [list(x), tuple(x), x.astype("float32"), x.astype(">f8"), np.repeat(x, 2)[::2], x.view(Sub), unaligned,
              x.astype("int64"), x[::-1][::-1].copy()[::-1][::-1]]
    for k, other in enumerate(others):
        assert np.array_equal(f(other, y), x * y) and np.array_equal(f(y, other), x * y), k
    assert len(seen) == 2 * (3 if NATIVE else len(others)), "lists, tuples and subclasses"
    before = len(seen)
    assert np.array_equal(f(x, b=y), x * y) and np.array_equal(f(b=y, a=x), x * y)
    assert np.array_equal(f(**{"".join(["", "b"]): y, str(b"a", "ascii"): x}), x * y)
    out = np.empty(6)
    assert f(x, y, out=out) is out and np.array_equal(out, x * y)
    readonly = x.copy()
    readonly.flags.writeable = False
    assert np.array_equal(f(readonly, y), x * y)
    assert len(seen) == before + (0 if NATIVE else 5)


def test_errors_are_the_same():
    a, b = two()
    x = np.arange(3.0)
    calls = [lambda f: f(x), lambda f: f(x, x, x), lambda f: f(x, np.arange(4.0)), lambda f: f(x, x[None]),
             lambda f: f(x, x * 1j), lambda f: f(x, "no"), lambda f: f(x, c=x), lambda f: f(x, None)]
    new, old = sc.compile(a * b, [a, b]), sc.compile(a * b, [a, b])
    served(new, x, x)
    for call in calls:
        with pytest.raises(sc.SymcError) as one:
            call(old)
        with pytest.raises(sc.SymcError) as other:
            call(new)
        assert str(one.value) == str(other.value) and "test_call_path.py:" in str(one.value)


def test_a_program_that_refuses_at_run_time_says_why():
    x = sc.input("x", "float64", shape=("n",))
    i = sc.input("i", "int64", shape=("k",))
    f = sc.compile(x[i], [x, i])
    data, good, bad = np.arange(5.0), np.array([0, 4]), np.array([0, 5])
    with pytest.raises(sc.SymcError) as first:
        f(data, bad)
    f(data, good)
    f(data, good)
    for _ in range(3):
        assert np.array_equal(f(data, good), data[good])
        with pytest.raises(sc.SymcError) as later:
            f(data, bad)
        assert str(later.value).splitlines()[0] == str(first.value).splitlines()[0]


def test_more_shapes_than_there_is_place_for():
    a, b = two()
    f = sc.compile((a * b, sc.sum(a)), [a, b])
    sizes = list(range(1, 30)) * 8
    for n in [*sizes, *sorted(sizes)]:
        x = np.arange(float(n))
        product, total = f(x, x)
        assert np.array_equal(product, x * x) and total == x.sum()


def test_nothing_is_kept_and_nothing_is_lost():
    a, b = two()
    f = sc.compile((a * b, {"s": a + b}), [a, b])
    g = served(sc.compile(a * b, [a, b]), np.arange(3.0), np.arange(3.0))
    x, y = np.arange(3.0), np.arange(3.0)
    served(f, x, y)
    dtype = x.dtype
    objects = (x, y, dtype, f, g, f.__call__, None)
    before = [sys.getrefcount(o) for o in objects]
    kept = f(x, y)
    counts = sys.getrefcount(kept), sys.getrefcount(kept[0])
    assert counts == (2, 2)
    del kept
    for _ in range(20_000):
        f(x, y), g(x, y), g([0, 1, 2], y), g(x, b=y)
    after = [sys.getrefcount(o) for o in objects]
    assert all(abs(p - q) < 50 for p, q in zip(before, after)), (before, after)


def test_a_function_goes_when_nobody_has_it():
    a, b = two()
    f = served(sc.compile(a * b, [a, b]), np.arange(3.0), np.arange(3.0))
    call, ref, calling = f.__call__, weakref.ref(f), weakref.ref(f._call_path)
    gc.disable()
    try:
        del f
        assert ref() is None
        assert np.array_equal(call(np.arange(3.0), np.ones(3)), np.arange(3.0))
        del call
        assert calling() is None
    finally:
        gc.enable()


def test_copies_and_pickles_are_called_as_well():
    a, b = two()
    x = np.arange(3.0)
    f = served(sc.compile(a * b, [a, b]), x, x)
    for g in (pickle.loads(pickle.dumps(f)), copy.copy(f), copy.deepcopy(f), f.copy()):
        assert isinstance(g, sc.CompiledFunction) and g is not f
        for _ in range(4):
            assert np.array_equal(g(x, x), x * x)
        assert g.__call__ is not f.__call__


def test_how_it_is_called_can_be_asked():
    a, b = two()
    f = served(sc.compile(a * b, [a, b]), np.ones(2), np.ones(2))
    assert str(inspect.signature(f)) == "(*args: 'Any', out: 'Any' = None, **kwargs: 'Any') -> 'Any'" or "out" in str(
        inspect.signature(f))
    assert callable(f) and isinstance(f, sc.CompiledFunction) and list(map(f, [np.ones(2)], [np.ones(2)]))


@pytest.mark.parametrize("n", [4, 40_000])
def test_concurrent_callers(n):
    """Short plans keep the lock of the interpreter, long ones do not."""
    x = sc.input("x", "float64", shape=("n",))
    f = sc.compile((sc.sum(x) - x, x[::-1] * 2), [x])
    served(f, np.zeros(n))
    wrong, start = [], threading.Barrier(8)

    def work(k):
        data = np.arange(n) + float(k)
        want = (data.sum() - data, data[::-1] * 2)
        start.wait()
        for _ in range(300 if n < 100 else 60):
            found = f(data, ) if k % 3 else f(x=data)
            if not all(np.allclose(p, q, rtol=1e-12) for p, q in zip(found, want)):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_shapes_change_while_others_run():
    x = sc.input("x", "float64", shape=("n",))
    f = sc.compile(sc.cumsum(x) + 1, [x])
    wrong = []

    def work(k):
        rng = np.random.default_rng(k)
        for _ in range(200):
            data = np.ones(int(rng.integers(1, 40)) * 500)
            if f(data)[-1] != len(data) + 1:
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


@pytest.mark.parametrize("n", [2000, 4000])
def test_no_memory_is_an_error_of_the_call(n):
    """Of a result that native code makes, and of a large one."""
    import resource

    x = sc.input("x", "float64", shape=("n",))
    w = sc.shared(0.0, "w")
    f = sc.compile((sc.sum(x), x[:, None] * x), [x], updates={w: w + 1.0})
    data = np.ones(n)
    kept = [f(data), f(data)]  # the memory of a large one would serve the next call
    assert 8 * n * n >= LARGE or type(f.__call__) is type(len) or not NATIVE
    taken = int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (taken + (16 << 20), limits[1]))
    try:
        for _ in range(3):
            with pytest.raises(MemoryError) as e:
                for _ in range(20):  # the first ones may find memory that was freed before
                    kept.append(f(data))
            assert any("test_call_path.py:" in note for note in e.value.__notes__)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
    total, product = f(data)
    assert total == n and product.shape == (n, n) and w.get_value() == len(kept) + 1


def test_without_native_code_everything_works(monkeypatch):
    monkeypatch.setattr(entry, "_native", None)
    a, b = two()
    f = sc.compile(a * b, [a, b])
    for _ in range(4):
        assert np.array_equal(f(np.arange(3.0), np.ones(3)), np.arange(3.0))
    assert type(f.__call__) is not type(len) and not f._call_path._learns


def test_other_layouts_of_objects_are_seen(monkeypatch):
    assert entry._as_expected() == NATIVE
    for name, place in (("nd", 2), ("descr", 6), ("flags", 7), ("dims", 5), ("data", 4)):
        monkeypatch.setitem(entry.ARRAY, name, place)
        assert not entry._as_expected()
        monkeypatch.undo()
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    assert not entry._possible()


@pytest.mark.skipif(not NATIVE, reason="no native entry here")
def test_the_entry_is_tried_once_a_machine(monkeypatch, tmp_path):
    """What was found is noted on disk only if all was as it should be."""
    native, tried = entry.supported(), []
    monkeypatch.setattr(entry, "_copies", lambda native: tried.append(native) or len(tried) > 1)
    with sc.config(cache_dir=str(tmp_path / "own")):
        assert [entry._serves(native) for _ in range(4)] == [False, True, True, True] and len(tried) == 2


@pytest.mark.skipif(not NATIVE, reason="no native entry here")
def test_one_call_does_not_wait_for_the_entry_to_be_compiled(monkeypatch, tmp_path):
    monkeypatch.setattr(entry, "_native", False)
    a, b = two()
    with sc.config(cache_dir=str(tmp_path / "own")):
        entries = []
        for _ in range(3):
            f = sc.compile(a * b, [a, b])
            f(np.arange(3.0), np.ones(3))
            entries.append(f._call_path._entry)
            f(np.arange(3.0), np.ones(3))
            assert f._call_path._entry is not None
        assert [e is not None for e in entries] == [False, True, True]


def test_what_does_not_lend_itself_stays_in_python():
    x = sc.input("x", "float64", shape=("n",))
    data = np.ones(3)
    for f in (
        sc.compile(x + 1.0, [x], donate=[x]),
        sc.compile(x + 1.0, [x], mode="reference"),
        sc.compile(x + 1.0, [(x,)]),
    ):
        for _ in range(4):
            f(data.copy() if f._signature.simple else (data.copy(),))
        assert type(f.__call__) is not type(len)


# --- states -----------------------------------------------------------------------------------------------------------


def step():
    """A function that reads one state, writes one in place, and replaces one."""
    x = sc.input("x", "float64", shape=(3,))
    scale, total, last = (sc.shared(np.full(3, v), n) for v, n in ((2.0, "scale"), (0.0, "total"), (0.0, "last")))
    f = sc.compile(sc.sum(last) + x * scale, [x], updates={total: total + x, last: x[::-1] + last[::-1] * 0.5})
    return f, scale, total, last


def test_states_are_read_and_replaced(monkeypatch):
    f, scale, total, last = step()
    seen = watched(f, monkeypatch)
    sums, before = np.zeros(3), np.zeros(3)
    for k in range(20):
        x = RNG.normal(size=3)
        if k == 9:
            scale.set_value(np.full(3, 5.0))
            before = np.arange(3.0)
            last.set_value(before)
        found = f(x)
        assert np.allclose(found, before.sum() + x * (2.0 if k < 9 else 5.0))
        sums, before = sums + x, x[::-1] + before[::-1] * 0.5
        assert np.allclose(total.get_value(), sums) and np.allclose(last.get_value(), before)
    assert len(seen) == (1 if NATIVE else 20)
    assert total.cell.version == 20 and last.cell.version == 21 and scale.cell.version == 1
    counts = [sys.getrefcount(v.cell.array) for v in (scale, total, last)]
    x = np.ones(3)
    for _ in range(2000):
        f(x)
    assert counts == [sys.getrefcount(v.cell.array) for v in (scale, total, last)] and sys.getrefcount(x) == 2


def test_only_updates():
    w = sc.shared(np.zeros(2), "w")
    f = sc.compile((), [], updates={w: w + 1.0})
    assert [f() for _ in range(5)] == [()] * 5 and w.get_value()[0] == 5.0


def test_borrowed_states_take_the_other_way(monkeypatch):
    f, _, total, _ = step()
    served(f, np.ones(3))
    seen = watched(f, monkeypatch)
    inside = total.get_value(borrow=True)
    want = inside + inside
    f(inside)  # an argument that is the state itself
    assert np.allclose(total.get_value(), want) and len(seen) == 1


def test_a_state_that_is_held_is_waited_for():
    f, _, total, _ = step()
    x = np.ones(3)
    served(f, x)
    thread = threading.Thread(target=f, args=(x,))
    with total.cell.lock:
        thread.start()
        thread.join(0.1)
        assert thread.is_alive()
    thread.join()
    assert total.get_value()[0] == 3.0


def test_states_that_do_not_fit_are_refused():
    x, w = sc.input("x", "float64", shape=("n",)), sc.shared(np.ones(3), "w", shape=("n",))
    f = sc.compile(x * w, [x])
    served(f, np.ones(3))
    w.set_value(np.ones(4))
    for _ in range(3):
        with pytest.raises(sc.ShapeError):
            f(np.ones(3))
        assert f(np.ones(4)).shape == (4,)


def test_copies_with_other_states():
    f, _, total, _ = step()
    served(f, np.ones(3))
    other = sc.shared(np.zeros(3), "other")
    g = f.copy({total: other})
    for _ in range(4):
        g(np.ones(3))
        f(np.ones(3))
    assert other.get_value()[0] == 4.0 and total.get_value()[0] == 6.0


@pytest.mark.parametrize("n", [3, 50_000])
def test_concurrent_updates_are_all_done(n):
    x, w = sc.input("x", "float64", shape=(n,)), sc.shared(np.zeros(n), "w")
    f = sc.compile(sc.sum(w), [x], updates={w: w + x})
    served(f, np.ones(n))
    threads = [threading.Thread(target=lambda: [f(np.ones(n)) for _ in range(100)]) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert (w.get_value() == 802.0).all() and w.cell.version == 802


def test_what_is_kept_of_states_notices_updates_by_other_functions():
    x, w = sc.input("x", "float64", shape=(3,)), sc.shared(np.eye(3) * 2.0, "w")
    solve = sc.compile(sc.linalg.solve(w, x), [x])
    grow = sc.compile((), [], updates={w: w * 2.0})
    for k in range(1, 6):
        assert np.allclose(solve(np.ones(3)), 0.5 / 2 ** (k - 1))
        grow()


def test_what_checks_indices_is_served_and_an_index_out_of_bounds_says_so(monkeypatch):
    x, i = sc.input("x", "float64", shape=("n",)), sc.input("i", "int64", shape=("m",))
    f = served(sc.compile([x[i] * 2, sc.sum(x)], [x, i]), np.arange(4.0), np.arange(3))
    seen = watched(f, monkeypatch)
    for indices in ([0, 3, -4], [1, 1, 1]):
        twice, total = f(np.arange(4.0), np.array(indices))
        np.testing.assert_array_equal(twice, 2 * np.arange(4.0)[indices])
        assert total == 6
    assert not NATIVE or not seen
    for bad in (4, -5):
        with pytest.raises(sc.errors.IndexingError, match=f"index {bad} is out of bounds for axis 0 of size 4"):
            f(np.arange(4.0), np.array([0, bad, 1]))
    np.testing.assert_array_equal(f(np.arange(4.0), np.array([2, 0, 1]))[0], [4, 0, 2])
