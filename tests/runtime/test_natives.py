"""Native functions in the language: what they may say beside kernels, and that other readers refuse it."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from symc.codegen.c.printer import Unit
from symc.codegen.language.helpers import called, inlined, native, plain
from symc.codegen.language.names import i64, u8, u64
from symc.codegen.language.native import (
    Open,
    Outside,
    T,
    address,
    array,
    atomic_add,
    atomic_exchange,
    atomic_load,
    memory,
    pointer,
    unlikely,
    word,
)
from symc.codegen.language.syntax import Unsupported
from symc.ir.record import Numbers
from symc.runtime.cache.machine_code import _loaded
from symc.runtime.compilers import llvm_natives
from symc.runtime.compilers.image import for_good
from symc.runtime.compilers.llvm_compile import module_code

before = SIDE = Open
memcpy, compare = Outside("memcpy", "vppl"), Outside("", "ipp")


class Word(metaclass=Numbers):
    FIRST = 0
    LAST = 2


@inlined
def less(x, y):
    return x < y


@inlined
def more(x, y):
    return x > y


@native
def extreme(to: array[T], x: array[T], n: i64, other: array[T], swapped: i64):
    """The first number of an array by an order that is open, through memory; of either of two arrays."""
    own, given = memory(x, SIDE), other if swapped else x
    memcpy(own, given[1:], (n - 1) * 8)
    found = given[0]
    for k in range(n - 1):
        if unlikely(before(own[k], found)):
            found = own[k]
    to[0] = found


@called
def swap(a, b):
    a[Word.FIRST], b[Word.LAST] = b[Word.LAST], a[Word.FIRST]
    if a[Word.FIRST] == 7:
        return
    a[1] = 5


@plain
def words(a: array[u64], bytes_: array[u8], number: u64):
    swap(a, a)
    old = atomic_add(a, number)
    if atomic_exchange(a, old, 1) or not atomic_exchange(a, old + number, 9):
        return u64(0)
    return atomic_load(pointer(u64, address(a))) + u64(word(bytes_[1:]))


@called
def ascending(x: array[i64], y: array[i64]):
    return x[0] < y[0]


@plain
def through(x: array[i64], f: array[u8]):
    """The result of a function that is given, with one of our own."""
    return compare(f, x, ascending)


@native
def taken(to: array[i64], k: i64):
    if SIDE:
        to[k] = 1
    else:
        to[k] = 2


def load(name: str, function: Any, level: int = 1, /, **open_: Any) -> int:
    code = _loaded(module_code(llvm_natives.text({name: (function, open_)}), level))
    for_good(code)
    return code.places[f"symc_{name}"]


def run(at: int, *given: Any, result: Any = None) -> Any:
    passed = [a.ctypes.data if isinstance(a, np.ndarray) else a for a in given]
    kinds = [ctypes.c_void_p if isinstance(a, np.ndarray) else ctypes.c_uint64 for a in given]
    return ctypes.CFUNCTYPE(result, *kinds)(at)(*passed)


@pytest.mark.parametrize("level", range(4))
@pytest.mark.parametrize("dtype", ["f64", "i64", "u64"])
def test_types_numbers_and_functions_may_be_open(dtype: str, level: int) -> None:
    x, y = (np.array(v, np.dtype(f"{dtype[0]}8")) for v in ([3, 1, 9, 2], [4, 8, 6, 7]))
    for order, swapped, want in ((less, 0, 1), (more, 0, 9), (less, 1, 4), (more, 1, 8)):
        to = np.zeros(1, x.dtype)
        at = load("extreme", extreme, level, T=dtype, SIDE=8, before=order)
        run(at, to, x, np.array([4]), y, np.array([swapped]))
        assert to[0] == want


@pytest.mark.parametrize("level", range(4))
def test_words_that_threads_share_and_named_numbers(level: int) -> None:
    a, b = np.array([3, 0, 40], np.uint64), np.arange(16, dtype=np.uint8)
    found = run(load("words", words, level), a, b, 2, result=ctypes.c_uint64)
    assert a.tolist() == [9, 5, 3] and found == 9 + int(b[1:9].view(np.int64)[0])


def test_functions_are_values_and_are_given() -> None:
    x = np.array([1, 2])
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    seen = []
    given = kind(lambda p, f: seen.append((p, f)) or 5)
    at = ctypes.cast(given, ctypes.c_void_p).value
    assert ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(load("through", through))(
        x.ctypes.data, at) == 5
    assert seen[0][0] == x.ctypes.data and seen[0][1]


@pytest.mark.parametrize("side", [0, 1])
def test_what_is_known_is_decided_before(side: int) -> None:
    text = llvm_natives.text({"taken": (taken, {"SIDE": side})})
    assert "br i1" not in text and f"store i64 {2 - side}" in text


def test_what_is_left_open_must_be_said() -> None:
    with pytest.raises(Unsupported):
        llvm_natives.text({"taken": (taken, {})})


@called
def keeps(n):
    own = memory(i64, n)
    own[0] = n
    return own[0]


@called
def copies(n):
    memcpy(n, n, n)
    return n


@pytest.mark.parametrize("function", [keeps, copies], ids=lambda f: f.name)
def test_c_refuses_them(function: Any) -> None:
    with pytest.raises(Unsupported):
        Unit(lambda name: None).helper(function, ("i64",))
