"""What a traced function reads beside its data: changed, it is traced anew; and it is not kept alive by that."""

import collections
import dataclasses
import enum
import functools
import gc
import itertools
import math
import weakref
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePosixPath

import numpy as np
import pytest

import symc as sc
from symc.driver.static_keys import key_of

X = np.arange(3.0)
FACTOR = 2.0


class Plain:
    shared = 2.0

    def __init__(self, k=2.0):
        self.k = k

    def times(self, x):
        return x * self.k

    def __call__(self, x):
        return x * self.k


class Slots:
    __slots__ = ("__weakref__", "k")

    def __init__(self, k=2.0):
        self.k = k


class Child(Slots):
    pass


class Named(dict):
    """A dict with attributes."""


@dataclasses.dataclass
class Config:
    kind: str = "a"
    inner: object = dataclasses.field(default_factory=Plain)


@dataclasses.dataclass(frozen=True)
class Frozen:
    kind: object = "a"


class Mode(enum.Enum):
    DOUBLE = 2.0
    TRIPLE = 3.0


Pair = collections.namedtuple("Pair", "name inner")


def of(number):
    """A closure over a number, and what changes it."""

    def get(x):
        return x * number

    def put(new):
        nonlocal number
        number = new

    return get, put


def put(obj, name, item):
    object.__setattr__(obj, name, item)


def default_of(fn, k):
    fn.__defaults__ = (k,)


#: What is read -> (the thing, how x is computed with it, how it is changed).
READS = {
    "attribute": (Plain(), lambda p, x: x * p.k, lambda p: put(p, "k", 3.0)),
    "attribute of equal value": (Plain(1), lambda p, x: x * 3 if p.k is True else x, lambda p: put(p, "k", True)),
    "attribute of another sign": (Plain(0.0), lambda p, x: x + math.copysign(1, p.k), lambda p: put(p, "k", -0.0)),
    "new attribute": (Plain(), lambda p, x: x * getattr(p, "other", 1), lambda p: put(p, "other", 5)),
    "class attribute": (Plain(), lambda p, x: x * p.shared, lambda p: setattr(Plain, "shared", Plain.shared + 1)),
    "class": (Plain, lambda p, x: x * p.shared, lambda p: setattr(Plain, "shared", Plain.shared + 1)),
    "slot": (Slots(), lambda p, x: x * p.k, lambda p: put(p, "k", 3.0)),
    "slot of the base": (Child(), lambda p, x: x * p.k, lambda p: put(p, "k", 3.0)),
    "inner object": (Plain(Plain()), lambda p, x: x * p.k.k, lambda p: put(p.k, "k", 3.0)),
    "item of a list": (Plain([1, 2]), lambda p, x: x * p.k[1], lambda p: p.k.append(p.k.pop() + 1)),
    "item of a dict": (Plain({"a": 1}), lambda p, x: x * p.k["a"], lambda p: p.k.update(a=4)),
    "order of a dict": (Plain({"a": 1, "b": 2}), lambda p, x: x * next(iter(p.k.values())),
                        lambda p: p.k.update(a=p.k.pop("a"))),
    "member of a set": (Plain({1, 2}), lambda p, x: x * sum(p.k), lambda p: p.k.add(5)),
    "element of an array": (Plain(np.ones(3)), lambda p, x: x * p.k, lambda p: p.k.__setitem__(0, 7)),
    "element of a large array": (Plain(np.ones(3000)), lambda p, x: x * p.k[2900:2903],
                                 lambda p: p.k.__setitem__(2901, 7)),
    "array of another dtype": (Plain(np.ones(3, "f4")), lambda p, x: x.astype("f4") + p.k,
                               lambda p: put(p, "k", np.ones(3))),
    "object in an array": (Plain(np.array([1, "a"], object)), lambda p, x: x * p.k[0],
                           lambda p: p.k.__setitem__(0, 7)),
    "attribute of a dict": (Plain(Named()), lambda p, x: x * getattr(p.k, "k", 1), lambda p: put(p.k, "k", 3.0)),
    "item of a deque": (Plain(collections.deque([1])), lambda p, x: x * p.k[-1], lambda p: p.k.append(4)),
    "dataclass": (Config(), lambda p, x: x * (2 if p.kind == "a" else 3), lambda p: put(p, "kind", "b")),
    "object in a dataclass": (Config(), lambda p, x: x * p.inner.k, lambda p: put(p.inner, "k", 3.0)),
    "frozen dataclass": (Frozen(), lambda p, x: x * (2 if p.kind == "a" else 3), lambda p: put(p, "kind", "b")),
    "object in a named tuple": (Pair("a", Plain()), lambda p, x: x * p.inner.k, lambda p: put(p.inner, "k", 3.0)),
    "enum in an attribute": (Plain(Mode.DOUBLE), lambda p, x: x * p.k.value, lambda p: put(p, "k", Mode.TRIPLE)),
    "bound method": (Plain().times, lambda p, x: p(x), lambda p: put(p.__self__, "k", 3.0)),
    "callable object": (Plain(), lambda p, x: p(x), lambda p: put(p, "k", 3.0)),
    "partial": (functools.partial(lambda p, x: x * p.k, Plain()), lambda p, x: p(x),
                lambda p: put(p.args[0], "k", 3.0)),
    "closure": (of(2.0), lambda p, x: p[0](x), lambda p: p[1](3.0)),
    "default": (lambda x, k=2.0: x * k, lambda p, x: p(x), lambda p: default_of(p, 3.0)),
    "global of a function": (lambda x: x * FACTOR, lambda p, x: p(x), lambda p: globals().update(FACTOR=FACTOR + 1)),
    "attribute of a function": (of(1.0)[0], lambda p, x: x * getattr(p, "k", 1), lambda p: setattr(p, "k", 3.0)),
    "state of a random generator": (Plain(np.random.default_rng(0)), lambda p, x: x * (p.k.bit_generator.state
                                    ["state"]["state"] % 1000), lambda p: p.k.random()),
    "cycle": (Plain(), lambda p, x: x * p.k[1], None),
}  # fmt: skip


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("by", ["argument", "static"])
def test_what_is_read_is_read_again(name, by):
    thing, compute, change = READS[name]
    if name == "cycle":
        thing.k = [thing, 2.0]
        change = lambda p: p.k.__setitem__(1, p.k[1] + 1)
    bound = functools.partial(sc.jit(compute, mode="reference", static=(0,) if by == "static" else ()), thing)
    for _ in range(3):
        np.testing.assert_array_equal(bound(X), compute(thing, X))
        np.testing.assert_array_equal(bound(X), compute(thing, X))
        change(thing)


def test_methods_read_their_object_again():
    class Model:
        def __init__(self):
            self.k, self.calls = 2.0, 0

        @sc.jit(mode="reference")
        def __call__(self, x):
            self.calls += 1
            return x * self.k

    m = Model()
    for k in (2.0, 3.0, 2.0, 3.0):
        m.k = k
        for _ in range(3):
            assert m(X).tolist() == [0, k, 2 * k]
    assert m.calls == 4  # one trace a change: what a trace changes itself is no reason for another


def test_variables_around_a_function_are_looked_at_again():
    k, other = 2.0, [1.0]

    @sc.jit(mode="reference")
    def g(x):
        return x * k * FACTOR * other[0] * (lambda: helper)()(1)

    def helper(x):
        return x

    for _ in range(3):
        assert g(X).tolist() == g(X).tolist() == [0, k * FACTOR * helper(1), 2 * k * FACTOR * helper(1)]
        k += 1
        assert g(X)[1] == k * FACTOR * helper(1)
        globals()["FACTOR"] += 1
        assert g(X)[1] == k * FACTOR * helper(1)
        helper = lambda x, h=helper: 2 * h(x)
        assert g(X)[1] == k * FACTOR * helper(1)


def test_a_trace_that_changes_a_variable_around_it_is_one_trace():
    count = 0

    @sc.jit(mode="reference")
    def g(x):
        nonlocal count
        count += 1
        return x

    for _ in range(5):
        g(X)
    assert count == 1


def test_functions_of_one_text_are_traced_once():
    @sc.jit(mode="reference")
    def apply(fn, x):
        return fn(x)

    for k in (2.0, 3.0):
        for _ in range(3):
            assert apply(lambda v: v * k, X).tolist() == [0, k, 2 * k]  # noqa: B023
    assert len(apply.variants) == 2


EQUAL = [1, True, 1.0, 1 + 0j, np.float32(1), np.float64(1), np.int8(1), np.True_, 0, 0.0, -0.0, False,
         complex(0, -0.0), math.nan, "1", b"1", None, ..., int, float, Mode.DOUBLE, Fraction(1), Decimal(1),
         Decimal("1.0"), PurePosixPath("1"), range(1), range(2), slice(1), slice(True), np.dtype("f4"),
         np.dtype("f8")]  # fmt: skip
WRAPPED = [*EQUAL, *[(x,) for x in EQUAL], *[[x] for x in EQUAL[:8]], *[{"k": x} for x in EQUAL[:8]],
           *[Frozen(x) for x in EQUAL[:8]], *[Plain(x) for x in EQUAL[:16]]]  # fmt: skip


def test_values_that_are_equal_are_told_apart():
    keys = [key_of(x) for x in WRAPPED]
    for (a, ka), (b, kb) in itertools.combinations(zip(WRAPPED, keys, strict=True), 2):
        assert ka != kb, (a, b)
    assert [key_of(x) for x in WRAPPED] == keys and len({*keys}) == len(keys)


def test_dict_keys_that_are_equal_are_told_apart():
    @sc.jit(mode="reference")
    def g(p):
        return {k: v + len(repr(k)) for k, v in p.items()}

    for key in (1, True, 1.0):
        (k,), (v,) = zip(*g({key: 0.0}).items(), strict=True)
        assert repr(k) == repr(key) and v == len(repr(key))


HELD = {
    "an object": Plain, "slots": Slots, "nested": lambda: Plain(Plain()), "an array": lambda: Plain(np.ones(1000)),
    "a state": lambda: Plain(sc.shared(np.ones(3), "w")), "a dataclass": lambda: Config(inner=Plain()),
    "a closure": lambda: of(2.0)[0], "a method": lambda: Plain().times,
}  # fmt: skip


def test_what_a_function_was_called_with_is_freed():
    @sc.jit(mode="reference")
    def g(p, x):
        return x * 2

    refs = {}
    for name, make in HELD.items():
        held = make()
        refs[name] = weakref.WeakMethod(held) if hasattr(held, "__self__") else weakref.ref(held)
        g(held, X)
        del held
    gc.collect()
    assert [name for name, ref in refs.items() if ref() is not None] == []


def test_variants_of_what_has_an_identity_go_with_it():
    @sc.jit(mode="reference")
    def g(p, x):
        return x * p.k

    for _ in range(5):
        assert g(Plain(sc.shared(2.0)), X).tolist() == [0, 2, 4]
    gc.collect()
    assert not g.variants


def test_signatures_are_bounded(monkeypatch):
    """One that comes with each call, with a question about sizes and without; what went is compiled again."""
    monkeypatch.setattr("symc.driver.jit.MOST_SIGNATURES", 3)
    for g in (sc.jit(lambda x, name: x * len(name), mode="reference"),
              sc.jit(lambda x, name: x * len(name) if len(x) == 3 else x, mode="reference")):
        for k in (*range(9), 0, 0, 8):
            assert g(X, "a" * k).tolist() == [0, k, 2 * k]
            assert len(g.variants) <= 3
        assert len(g.variants) == len(g._watched) == 3 >= len(g._asked)


def test_what_cannot_be_read_twice_is_refused():
    g = sc.jit(lambda p, x: x, mode="reference")
    deep = []
    for _ in range(100_000):
        deep = Plain(deep)
    for bad, words in (((i for i in "a"), "use up"), (Plain(iter([1])), "use up"), (deep, "too deep")):
        with pytest.raises(sc.InputError, match=words):
            g(bad, X)
    while isinstance(deep, Plain):  # from the outside, as the interpreter frees it level by level
        deep = deep.k


def test_the_default_float_is_part_of_a_signature():
    A = sc.Variable("A")
    functions = [sc.jit(lambda x: sc.zeros(2) + x, mode="reference"), sc.compile(A + sc.zeros(2), mode="reference")]
    for g in functions:
        assert g(1).dtype == np.float64
    try:
        sc.set_default_float("float32")
        assert functions[0](1).dtype == np.float32
    finally:
        sc.set_default_float("float64")
    assert functions[0](1).dtype == np.float64


def test_numbers_of_one_type_and_two_dtypes():
    g = sc.jit(lambda x: x + 0, mode="reference")
    assert [g(1), g(2**63), g(1)] == [1, 2**63, 1]


def test_deferred_expressions_hold_what_was_written():
    A, c, items = sc.Variable("A"), np.ones(2), [1.0, 2.0]
    f = sc.compile([A * c, sc.stack([A, A]) + sc.asarray(items), np.multiply(A, c)], mode="reference")
    first = f(np.ones(2))
    c[:], items[0] = 7, 7.0
    for got, want in zip(f(np.ones(2, "f4")), first, strict=True):
        np.testing.assert_array_equal(got, want)
