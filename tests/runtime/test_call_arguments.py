"""Whatever is passed: native calls give what the reference gives, and refuse what it refuses, with the same words."""

from __future__ import annotations

import itertools
import sys
import threading
from typing import Any

import numpy as np
import pytest

import symc as sc

RNG = np.random.default_rng(0)


class Sub(np.ndarray):
    pass


A = [RNG.normal(size=5).astype("f4"), RNG.normal(size=10).astype("f4")[::2], np.arange(5, dtype="i1"),
     np.arange(5, dtype="u2"), np.arange(5) > 2, RNG.normal(size=5).astype(">f4"), np.arange(15, dtype="f4")[::-3],
     RNG.normal(size=(5, 3)).astype("f4")[:, 1], np.float16([1, 2, 3, 4, 5]), [1.0, 2, 3, 4, 5], RNG.normal(size=5),
     np.zeros(5, "f4").view(Sub), np.ma.array([1.0, 2, 3, 4, 5], dtype="f4"), range(5), np.arange(5),
     np.arange(5, dtype="c8"), "x", None, 3, 3.5, np.float32(3), np.zeros((5, 1), "f4")]
B = [np.arange(5, dtype="i2"), np.arange(5, dtype="u1"), np.arange(5, dtype="u2"), np.arange(5) + 2**20,
     [1, 2, 3, 4, 5], np.arange(5.0), np.ones(5, bool), np.arange(4, dtype="i2")]
C = [True, np.True_, 1, 2, 1.0, np.array(True), np.int64(1), None]
NUMBERS = [0, -0.0, 1.5, True, 2**53, -(2**53), 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 127, 128, -129, 255, 256, 1e300,
           np.nan, np.inf, np.float64(2.5), np.float32(2.5), np.int8(3), np.uint64(2**63), np.bool_(True), 1j, "1"]


def outcome(f: Any, *args: Any, **kwargs: Any) -> Any:
    try:
        return [(r.dtype, r.shape, r.tobytes()) for r in map(np.asarray, f(*args, **kwargs))]
    except sc.SymcError as e:
        return type(e), str(e).split("\n")[0]


def both(make: Any, inputs: list[Any]) -> tuple[Any, Any]:
    return sc.compile(make, inputs), sc.compile(make, inputs, mode="reference")


@pytest.mark.parametrize("how", ["by position", "by name", "mixed"])
def test_arrays(how: str) -> None:
    a, b = sc.input("a", "float32", shape=("n",)), sc.input("b", "int16", shape=("n",))
    c = sc.input("c", "bool", shape=())
    f, reference = both([sc.where(c, a * b, a - b), sc.abs(a)], [a, b, c])
    f(A[0], B[0], True)
    for x, y, z in [*itertools.product(A, B, C[:1]), *itertools.product(A[:3], B[:2], C)]:
        args = {"by position": (x, y, z), "by name": (), "mixed": (x,)}[how]
        named = {"by position": {}, "by name": dict(c=z, a=x, b=y), "mixed": dict(c=z, b=y)}[how]
        assert outcome(f, *args, **named) == outcome(reference, *args, **named), (x, y, z)


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i8", "i4", "i1", "u8", "u1", "?", "c16"])
def test_numbers(dtype: str) -> None:
    x = sc.input("x", dtype, shape=())
    f, reference = both([sc.where(x == x, x, x)], [x])
    outcome(f, 1)
    for number in NUMBERS:
        assert outcome(f, number) == outcome(reference, number), number


def test_out() -> None:
    x = sc.matrix("x")
    f, data = sc.compile(x * 2 + 1, [x]), np.arange(12.0).reshape(3, 4)
    f(data)
    base = np.zeros((6, 4))
    outs = [np.empty((3, 4)), np.empty((4, 3)).T, base[::2], base[3:], np.empty((3, 4)).view(Sub), data, data[::-1]]
    for out in outs:
        wanted = data * 2 + 1
        assert f(data, out=out) is out and np.array_equal(out, wanted)
    for wrong in (np.empty((3, 4), "f4"), np.empty((3, 5)), [1], np.broadcast_to(np.zeros(4), (3, 4))):
        with pytest.raises(sc.SymcError, match="out"):
            f(data, out=wrong)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_out_of_several_results(count: int) -> None:
    x, w = sc.matrix("x"), sc.shared(0.0, "w")
    outputs = (x * 2 + 1, sc.sum(x, axis=0), sc.exp(x))[:count]
    f = sc.compile(outputs, [x], updates={w: w + 1})
    data = np.arange(12.0).reshape(3, 4)
    wanted = f(data)
    base = np.zeros((7, 4))
    buffers: list[Any] = [np.empty((3, 4)), np.empty(4), base[:3], base[3:6], base[1:4], base[6], base[:6:2], data,
                          None, np.empty((3, 4), "f4"), np.empty((3, 5)), np.empty((3, 4)).view(Sub), 1.0]
    arrays = buffers[:8]
    before = [sys.getrefcount(b) for b in arrays]
    for n, outs in enumerate(itertools.product(buffers, repeat=count)):
        if count == 3 and n % 7:
            continue
        given = [b.copy() if b is data else b for b in outs]
        try:
            calls = w.get_value()
            found = f(data.copy(), out=tuple(given))
        except sc.SymcError:
            assert w.get_value() == calls and any(
                type(b) in (float, type(None)) or b.shape != r.shape or b.dtype != r.dtype
                or any(np.may_share_memory(b, c) for c in given[:k] if isinstance(c, np.ndarray))
                for k, (b, r) in enumerate(zip(given, wanted, strict=True)))
        else:
            assert type(found) is tuple and all(a is b for a, b in zip(found, given, strict=True))
            assert all(map(np.array_equal, found, wanted)) and w.get_value() == calls + 1
        del given
    found = outs = None
    assert [sys.getrefcount(b) for b in arrays] == before


def test_nothing_is_kept_of_arguments() -> None:
    x = sc.matrix("x")
    f, data, dtype = sc.compile(x * 2 + 1, [x]), np.ones((50, 50)), np.dtype("f8")
    out = np.empty((50, 50))
    before = [sys.getrefcount(k) for k in (data, dtype, out)]
    for _ in range(500):
        f(data), f(data[::2]), f(x=data.T), f(data.astype("f4")), f(data, out=out)
    after = [sys.getrefcount(k) for k in (data, dtype, out)]
    assert (after[0], after[2]) == (before[0], before[2]) and after[1] < before[1] + 100  # frames and the like have it


def test_threads_with_sizes_of_their_own() -> None:
    x = sc.matrix("x")
    f, wrong = sc.compile(sc.sum(sc.exp(x @ x.T), axis=1), [x]), list[Any]()

    def work(k: int) -> None:
        rng = np.random.default_rng(k)
        for _ in range(100):
            data = rng.normal(size=(int(rng.integers(0, 40)), int(rng.integers(1, 9)))) * 0.3
            if not np.allclose(f(data), np.exp(data @ data.T).sum(1)):
                wrong.append(data.shape)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
