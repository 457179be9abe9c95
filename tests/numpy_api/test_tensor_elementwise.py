"""Elementwise functions: NumPy's dtypes for every pair, values on edge inputs, broadcasting, weak Python numbers."""

import itertools
import operator

import numpy as np
import pytest

import symc as sc
from symc.ir.dtypes import ARITHMETIC
from symc.ir.types import DTYPES
from symc.numpy_api.ufuncs import UFUNCS
from symc.tensors.inputs import input as sc_input
from tests.numpy_api.numpy_compare import check, evaluate

EDGE = {
    "b": [True, False, True], "i": [-3, 0, 5], "u": [0, 1, 7],
    "f": [-np.inf, -2.5, -1.0, -0.0, 0.0, 0.5, 1.0, 3.0, np.inf, np.nan], "c": [0, 1j, -1 + 0.5j, 2 - 3j, 0.25 + 0j],
}
#: Relative errors allowed, by the size of the smallest dtype: the order of roundings differs in composed functions.
TOLERANCE = {1: 2e-3, 2: 2e-3, 4: 2e-6, 8: 1e-12, 16: 1e-12}


def legal_pairs(ufunc):
    for dtypes in itertools.product(ARITHMETIC, repeat=ufunc.nin):
        try:
            ufunc.resolve_dtypes((*dtypes, *[None] * ufunc.nout))
        except TypeError:
            continue
        yield dtypes


def values(dtype, k):
    return np.roll(np.array(EDGE[dtype.kind], dtype), k)[:3]


@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda u: u.__name__)
def test_ufunc(ufunc):
    for dtypes in legal_pairs(ufunc):
        if ufunc in (np.power, np.left_shift, np.right_shift) and dtypes[1].kind == "i":
            arrays = [values(dtypes[0], 0), np.array([0, 1, 3], dtypes[1])]
        else:
            arrays = [values(d, k) for k, d in enumerate(dtypes)]
        if ufunc is np.reciprocal and dtypes[0].kind in "iu":
            arrays = [np.array([1, 2, 3], dtypes[0])]  # 1 // 0 has no value that NumPy promises
        if ufunc is np.spacing:
            arrays = [abs(arrays[0])]  # NumPy's sign for negative numbers differs between float16 and the others
        check(ufunc, *arrays, rtol=TOLERANCE[min(d.itemsize for d in dtypes)], atol=1e-300)
    floats = legal_floats(ufunc)
    if floats:
        grid = np.array(list(itertools.product(EDGE["f"], repeat=ufunc.nin)))
        check(ufunc, *grid.T, rtol=1e-12)


def legal_floats(ufunc):
    return (DTYPES["f64"],) * ufunc.nin in set(legal_pairs(ufunc))


@pytest.mark.parametrize("ufunc", [u for u in UFUNCS if u.nin == 2], ids=lambda u: u.__name__)
def test_python_numbers_are_weak(ufunc):
    for dtype in ARITHMETIC:
        for number in (2, 1.5, True, 1j):
            x = values(dtype, 0)
            if ufunc is np.power and dtype.kind == "i":
                x = abs(x)  # whether an exponent is negative is not known when it is data: see the op
            for order in (0, 1):
                def fn(a, order=order, number=number):
                    return ufunc(a, number) if order == 0 else ufunc(number, a)
                try:
                    with np.errstate(all="ignore"):
                        fn(x)
                except (TypeError, ValueError):
                    with pytest.raises((TypeError, ValueError)):
                        fn(sc_input("x", dtype, (3,)))
                    continue
                check(fn, x, rtol=2e-3 if dtype.itemsize < 4 else 2e-5, atol=1e-300)


BINARY = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "lt", "le", "gt", "ge", "eq", "ne"]
BITS = ["and_", "or_", "xor", "lshift", "rshift"]


@pytest.mark.parametrize("name", BINARY)
def test_operators(name):
    fn = getattr(operator, name)
    x, y = np.array([[1.5, -2.0], [3.0, 0.5]]), np.array([[2.0, 3.0], [1.0, -1.0]])
    check(fn, x, y)
    check(lambda a: fn(a, y), x)
    check(lambda a: fn(x, a), y)
    check(lambda a: fn(x.astype("f4"), a), y)
    if name != "matmul":
        check(lambda a: fn(a, 2), x)
        check(lambda a: fn(3, a), x)
        check(lambda a: fn(np.float64(3), a), x.astype("f4"))
        check(lambda a: fn(np.float32(3), a), x.astype("f4"))
        check(lambda a: fn(a, [1.0, 2.0]), x)


@pytest.mark.parametrize("name", BITS)
def test_bit_operators(name):
    fn = getattr(operator, name)
    x = np.array([5, 3, -6])
    check(lambda a: fn(a, 2), x)
    check(lambda a: fn(2, a), abs(x))
    if "shift" not in name:
        check(fn, x > 0, x < 4)


def test_unary_operators():
    x = np.array([1.5, -2.5, 0.0])
    for fn in (
        operator.neg,
        operator.pos,
        abs,
        lambda a: divmod(a, 2.0),
        lambda a: divmod(5.0, a + 3),
        np.round,
        lambda a: a**2,
        lambda a: a**0.5,
        lambda a: a**-1,
        lambda a: a**3,
        lambda a: 2**a,
        lambda a: sum([a, a]),
    ):
        check(fn, x)
    check(operator.invert, np.array([1, -5]))
    check(operator.invert, np.array([True, False]))
    check(lambda a: a**2, np.array([3, -4]))
    check(lambda a: a**2.0, np.array([3, -4]))


def test_random_broadcasting():
    rng = np.random.default_rng(5)
    for _ in range(200):
        full = rng.integers(1, 4, rng.integers(0, 4))
        shapes = [
            tuple(1 if rng.random() < 0.3 else int(n) for n in full[rng.integers(0, len(full) + 1) :]) for _ in range(2)
        ]
        arrays = [rng.normal(size=s) for s in shapes]
        check(lambda a, b: a * b + a, *arrays)


def test_sizes_that_are_not_known_are_unified():
    x, y = sc_input("x", "f64", ("n",)), sc_input("y", "f64", ("m",))
    (got,) = evaluate([x + y], [x, y], [np.arange(3.0), np.ones(3)])
    np.testing.assert_array_equal(got, np.arange(3.0) + 1)
    z = sc_input("z", "f64", (3,))
    assert (x + z).shape == (3,)


def test_sizes_promote_like_python_numbers():
    x = sc_input("x", "f32", ("n",))
    n = x.shape[0]
    assert (x / n).dtype == (x * (n / 2)).dtype == (x + n * 1.5).dtype == np.float32
    assert (n + 1) is not None and (n * 2 + 1) == x.shape[0] * 2 + 1
    got = evaluate([x / n, n / 2 + sc.zeros(()), sc.asarray(n), x * 0 + n // 2], [x], [np.ones(5, "f4")])
    np.testing.assert_allclose(got[0], 0.2, rtol=1e-7)
    assert got[1] == 2.5 and got[2] == 5 and (got[3] == 2).all()
    assert n % 1 == 0 and n - n == 0 and n == x.shape[0]
    assert (n >= 0) is True


def test_integers_out_of_range():
    x = sc_input("x", "int8", (3,))
    with pytest.raises(sc.DTypeError, match="300 does not fit i8"):
        x + 300
    a = np.array([1, 2, -3], "i8")
    check(lambda x: x < 300, a)
    check(lambda x: x != -1, a.astype("u8"))
    check(lambda x: x > -1, a.astype("u1"))
    check(lambda x, y: x < y, np.array([-1, 5]), np.array([2**64 - 1, 3], "u8"))


def test_where_select_clip_and_others():
    x, y = np.array([1.0, -2.0, np.nan, 4.0]), np.array([2.0, 2.0, 2.0, np.inf])
    c = np.array([True, False, True, False])
    for fn in (
        lambda a, b: np.where(c, a, b),
        lambda a, b: np.where(a > 0, a, 0),
        lambda a, b: np.select([c, ~c], [a, b], default=0.0),
        lambda a, b: np.clip(a, -1, 1),
        lambda a, b: np.clip(a, a_min=None, a_max=b),
        lambda a, b: np.nan_to_num(b),
        lambda a, b: np.isclose(a, b),
        lambda a, b: np.isclose(a, a, equal_nan=True),
        lambda a, b: np.sinc(a),
        lambda a, b: np.round(a, 1),
        lambda a, b: np.fix(a),
        lambda a, b: np.angle(a),
        lambda a, b: np.real(a),
        lambda a, b: np.imag(a),
        lambda a, b: np.isreal(a),
    ):
        check(fn, x, y, rtol=1e-12, atol=1e-16)
    check(np.sinc, np.array([0.0, 1e-3, 2e-3, 0.01, 0.5, 1.0]), atol=1e-16)
    z = np.array([1 + 2j, -1j, 0])
    for fn in (
        np.angle,
        np.real,
        np.imag,
        np.conj,
        np.isreal,
        np.iscomplex,
        lambda a: a.real,
        lambda a: a.imag,
        np.nan_to_num,
    ):
        check(fn, z)
    for dtype in ("f4", "i4", "b1", "c8"):
        check(lambda a: np.where(a, a, 2), np.array([0, 1, 2]).astype(dtype))


def test_default_float():
    x = sc_input("x", "i32", (3,))
    sc.set_default_float("float32")
    try:
        assert (x / 2).dtype == sc.sqrt(x).dtype == sc.zeros(3).dtype == sc.asarray(1.5).dtype == np.float32
        assert (x * 1.5).dtype == sc.mean(x).dtype == np.float32
        assert (sc_input("y", "f64", ()) * 2).dtype == np.float64
    finally:
        sc.set_default_float("float64")


def test_default_float_and_what_has_no_dtype():
    """Under float32, nothing but arrays and dtypes that say so is float64; what meets float64 keeps its digits."""
    v, y, h = (sc_input(n, d, (2,)) for n, d in (("v", "f32"), ("y", "f64"), ("h", "float16")))
    number, mask = np.sqrt(2), sc_input("b", "bool", (2,))
    sc.set_default_float("float32")
    try:
        narrow = [
            v * [1.0, 2.0], v / number, number * v, np.multiply(number, v), 2.0**v, number**v, v**number,
            sc.asarray([1.0, 2.0]), sc.asarray(0.1), sc.asarray([v[0], 0.5]), sc.asarray(number), sc.asarray([]),
            sc.shared(0.1), sc.shared([0.1, 0.2]), sc.shared(number), sc.Constant(0.1), sc.Constant([0.1]),
            sc.full((2,), 0.1), sc.full((2,), [0.1, 0.2]), sc.linspace(0, 1, 5), sc.linspace(number, 2, 5),
            sc.arange(0.0, 1.0, 0.1), sc.zeros(2), sc.eye(2), sc.one_hot(sc.asarray([1]), 2), sc.where(mask, 0.1, 0.2),
            sc.where(mask, v, number), sc.stack([v[0], 0.1, number]), sc.concatenate([v, [0.1]]), sc.dot(v, [0.1, 0.2]),
            sc.append(v, [0.1]), v.at[0].set(number), sc.select([mask], [v], [0.1, 0.2]), sc.exp(1.0), sc.sum([0.1]),
            sc.asarray([1, 2]) / 2, sc.mean(sc.asarray([1, 2])), sc.linalg.norm(sc.asarray([3, 4])),
            sc.random.uniform(sc.random.key(0), (2,)), sc.random.normal(sc.random.key(0), loc=[0.0, 1.0]),
            sc.grad(sc.sum(v * number), v),
        ]  # fmt: skip
        assert [t.dtype.name for t in narrow] == ["float32"] * len(narrow)
        assert (h * [0.5]).dtype == (h * number).dtype == np.float16
        assert (v * [1j]).dtype == (v * np.complex128(1j)).dtype == np.complex64
        wide = [
            y * 0.1, y * [0.1, 0.1], y * np.float64(0.1), sc.where(mask, 0.1, y), sc.stack([y[0], 0.1])[1:],
            sc.append(y, 0.1 * np.ones(1))[2:], y.at[:].set(0.1), sc.full_like(y, 0.1), sc.asarray([0.1], "float64"),
            sc.full((2,), 0.1, "float64"), sc.pad(y, 1, constant_values=0.1)[:1], sc.insert(y, 0, 0.1)[:1],
        ]  # fmt: skip
        assert {t.dtype.name for t in [v * np.array([1.0, 2.0]), sc.shared(np.ones(2)), *wide]} == {"float64"}
        for t in wide:
            assert (evaluate([t], [y, mask], [np.ones(2), np.ones(2, bool)])[0] == 0.1).all(), t
        assert sc.compile(sc.Variable("A") * 0.1 + [1.0, 2.0])(np.ones(2, "f4")).dtype == np.float32
    finally:
        sc.set_default_float("float64")
    assert (v * [1.0, 2.0]).dtype == (v / number).dtype == sc.shared(0.1).dtype == np.float64  # NumPy's rules
    with pytest.raises(sc.DTypeError, match="default float"):
        sc.set_default_float("int32")


def test_dispatch_methods_of_ufuncs():
    x = np.array([[1.0, 2.0], [3.0, 5.0]])
    for fn in (
        np.add.reduce,
        lambda a: np.add.reduce(a, axis=None),
        lambda a: np.multiply.reduce(a, axis=1, keepdims=True),
        np.maximum.reduce,
        np.subtract.reduce,
        lambda a: np.add.accumulate(a, axis=1),
        lambda a: np.multiply.outer(a, a),
        lambda a: np.logical_or.reduce(a),
        np.logaddexp.reduce,
    ):
        check(fn, x)
    t = sc_input("x", "f64", (2, 2))
    for fn, words in (
        (lambda: np.add.at(t, 0, 1), r"x\.at\[i\]\.add"),
        (lambda: np.isnat(t), r"np\.isnat is not available"),
        (lambda: np.add(t, t, out=np.zeros((2, 2))), "out="),
        (lambda: np.fft.fft(t, out=np.zeros((2, 2), complex)), r"np\.fft\(out=\) is not"),
    ):
        with pytest.raises(sc.SymbolicValueError, match=words):
            fn()
    xp = t.__array_namespace__()
    assert xp.concat is sc.concat and xp.float32 == np.float32 and xp.pi == np.pi


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_powers_of_two_are_taken_out_and_put_in_with_one_rounding(dtype):
    """Also of numbers that are not normal, and into them."""
    rng, info, n = np.random.default_rng(0), np.finfo(dtype), 3000
    least = info.minexp - info.nmant
    with np.errstate(over="ignore"):
        x = np.ldexp(rng.uniform(1, 2, n) * rng.choice([-1, 1], n), rng.integers(least, info.maxexp, n)).astype(dtype)
    x = np.concatenate([x, np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, info.tiny, info.max], dtype)])
    into = rng.integers(least - 5, info.minexp + 2, len(x)) - np.frexp(np.where(np.isfinite(x), x, 1))[1]
    by = np.where(rng.integers(0, 2, len(x)), into, rng.integers(2 * least, -2 * least, len(x))).astype("int32")
    v, k = sc.input("x", dtype, shape=("n",)), sc.input("k", "int32", shape=("n",))
    part, e, moved = sc.compile([*sc.frexp(v), sc.ldexp(v, k)], [v, k])(x, by)
    want, exponents = np.frexp(x)
    with np.errstate(over="ignore"):
        want_moved = np.ldexp(x, by)
    for found, wanted in ((part, want), (moved, want_moved)):
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))
    np.testing.assert_array_equal(e[np.isfinite(x)], exponents[np.isfinite(x)])
