"""Quotients, remainders and powers by a number, and searches: the numbers are NumPy's, and loops have vectors."""

import mpmath
import numpy as np
import pytest

import symc as sc
from symc.codegen.language.syntax import function
from symc.codegen.language.typed import Pointer
from symc.runtime.compilers import llvm_compile
from symc.runtime.compilers.llvm_function import Module

R = np.random.default_rng(0)
LEAST, MOST = -(2**63), 2**63 - 1
WIDE = np.concatenate([R.integers(LEAST, MOST, 20000, endpoint=True), np.arange(-40, 40), [LEAST, MOST]])


@pytest.mark.parametrize("d", [3, 7, 10, 641, 1_000_003, 2**31 - 1, 2**31 + 11, 8, -7])
@pytest.mark.parametrize("dtype", ["int64", "uint8"])
def test_integers_divided_by_a_number(d, dtype):
    x, d = WIDE.astype(dtype), np.array(d).astype(dtype)
    found = sc.jit(lambda v: (v % d, v // d, sc.fmod(v, d), sc.sum(v % d)))(x)
    for got, want in zip(found, (x % d, x // d, np.fmod(x, d), np.sum(x % d)), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_integers_divided_by_integers(dtype):
    """Those around the ends of what floats hold, and those that a division may not meet."""
    info = np.iinfo(dtype)
    bits = (0, 7, 15, 23, 24, 31, 32, 49, 50, 51, 52, 53, 62, 63)
    near = [s * 2**k + d for k in bits for s in (1, -1) for d in (-1, 0, 1)]
    odd = np.array(sorted({v for v in [0, info.min, info.max, *near] if info.min <= v <= info.max}), dtype)
    some = R.integers(info.min, info.max, 5000, dtype, endpoint=True)
    some >>= R.integers(0, 8 * odd.itemsize, 5000).astype(dtype)
    x = np.concatenate([np.repeat(odd, odd.size), some, some])
    y = np.concatenate([np.tile(odd, odd.size), some[::-1], np.roll(some, 1) >> (np.array(2, dtype))])
    found = sc.jit(lambda a, b: (a % b, a // b, sc.sum(a // b)))(x, y)
    with np.errstate(all="ignore"):
        for got, want in zip(found, (x % y, x // y, np.sum(x // y)), strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2"])
def test_all_short_integers_divided_by_numbers(dtype):
    info = np.iinfo(dtype)
    x = np.arange(info.min, info.max + 1).astype(dtype)
    numbers = [3, 5, 7, 10, 11, 100, 127, 129, 255, 641, 10923, 21845, 32767, 32769, 65521, 65535]
    ds = [np.array(d).astype(dtype) for d in numbers if d <= info.max]
    found = sc.jit(lambda v: [(v // d, v % d, (v | 1) // d) for d in ds])(x)
    for d, got in zip(ds, found, strict=True):
        for g, want in zip(got, (x // d, x % d, (x | np.array(1, dtype)) // d), strict=True):
            np.testing.assert_array_equal(g, want)


def _chain(v, rng, steps):
    """Arithmetic with random numbers, around the ends of 31, 32 and 50 bits too."""
    def number(most):
        near = int(2 ** rng.integers(0, most)) + int(rng.integers(-2, 3))
        return max(1, near)

    for _ in range(steps):
        how = rng.integers(0, 8)
        if how < 3:
            v = v % (number(34) * int(rng.choice([1, 1, 1, -1])))
        elif how == 3:
            v = v // number(20)
        else:
            other = number(18)
            v = [v * other, v + other, v - other * other, (v & other) - (v >> 3)][how - 4]
    return v


@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i4", "u4", "i8"])
@pytest.mark.parametrize("seed", range(3))
def test_chains_of_integers(dtype, seed):
    """What is known to be short is multiplied and divided by fewer instructions; every number stays NumPy's."""
    info = np.iinfo(dtype)
    ends = np.array([info.min, info.min + 1, info.max - 1, info.max, 0, 1], dtype)
    x = np.concatenate([ends, R.integers(info.min, info.max, 600, dtype, endpoint=True)])
    chain = [100 * seed + k for k in range(4)]
    def formula(v):
        return tuple(_chain(v.astype("i8"), np.random.default_rng(k), 7) for k in chain)

    with np.errstate(all="ignore"):
        for got, want in zip(sc.jit(formula)(x), formula(x), strict=True):
            np.testing.assert_array_equal(got, want)


def test_places_divided_by_sizes():
    """Also by formulas of sizes beyond 2**50, and by no elements at all."""
    def formula(a):
        i, (n, m) = sc.arange(a.size), a.shape
        return i // m, i % m, i % (n * m * n * m * n * m), -i // (n + m)

    for shape in ((7, 33), (1000, 401), (1, 3)):
        (n, m), i = shape, np.arange(shape[0] * shape[1])
        want = i // m, i % m, i % (n * m) ** 3, -i // (n + m)
        for got, w in zip(sc.jit(formula)(np.zeros(shape)), want, strict=True):
            np.testing.assert_array_equal(got, w)
    f = sc.jit(lambda a, b: (b % a.shape[0], b // a.shape[0]))
    assert [r.tolist() for r in f(np.zeros(0), np.array([3, -3]))] == [[0, 0], [0, 0]]


def test_a_cast_is_no_array_where_it_is_moved():
    f = sc.jit(lambda x: x.astype("i8")[1:] * 3 + x.astype("i8")[:-1])
    x = np.arange(9, dtype="u1")
    np.testing.assert_array_equal(f(x), x[1:].astype("i8") * 3 + x[:-1])
    (compiled,) = f.variants.values()
    assert len(compiled.kernels) == 1


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_floats_become_integers(dtype):
    """Toward zero, the lowest bits of what fits into 64, and the least number elsewhere."""
    with np.errstate(all="ignore"):
        steps = [s * 2.0**k for k in (0, 6, 7, 8, 15, 16, 30, 31, 32, 50, 51, 52, 53, 62) for s in (1, -1)]
        ends = np.array(steps, dtype)
        x = np.concatenate([ends, np.nextafter(ends, np.zeros(1, dtype)),
                            np.nextafter(ends, np.array(np.inf, dtype) * np.sign(ends)), ends + np.sign(ends) / 2,
                            [0.0, -0.0, 0.5, -0.5, 2.5, -2.5], R.normal(size=3000) * 300])
        x = x[np.isfinite(x)].astype(dtype)
        whole = [int(v) for v in x]
        for to in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"):
            bits = 8 * np.dtype(to).itemsize
            want = np.array([v % 2**bits for v in whole], "u8").astype(f"u{bits // 8}").view(to)
            np.testing.assert_array_equal(sc.jit(lambda v, to=to: v.astype(to))(x), want)
        odd = np.array([np.nan, np.inf, -np.inf] * 7, dtype)
        assert set(sc.jit(lambda v: v.astype("i8"))(odd).tolist()) == {LEAST}
        assert set(sc.jit(lambda v: v.astype("i4"))(odd).tolist()) == {0}


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_hypot_where_squares_leave_the_range(dtype):
    with np.errstate(all="ignore"):
        powers = 10.0 ** np.linspace(-44 if dtype == "f4" else -322, 38 if dtype == "f4" else 307, 60)
        line = np.concatenate([powers, [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -3.0]]).astype(dtype)
        x, y = np.repeat(line, line.size), np.tile(line, line.size)
        got, want = sc.jit(sc.hypot)(x, y), np.hypot(x.astype("g"), y.astype("g")).astype(dtype)
    np.testing.assert_allclose(got, want, rtol=3 * np.finfo(dtype).eps, atol=np.finfo(dtype).smallest_subnormal)


def _text_of(body, dtype="i64"):
    operands = {"n0": llvm_compile.Scalar("i64", "%n0"), "a0": Pointer(dtype, "%a0"), "o0": Pointer("i64", "%o0")}
    module = Module()
    module.kernel(function(f"def f(n0, a0, o0):\n{body}"), operands)
    return module.text()


def test_short_numbers_take_two_products():
    """A remainder of what is known to have 31 bits; none of 64 bits for bytes; four of halves and one more for what may
    have 63."""
    step = "    for i in range(n0):\n        o0[i] = int_mod({}, 1000003)\n"
    counts = [_text_of(step.format(e), t).count(" mul i64") for e, t in (
        ("a0[i]", "u16"), ("a0[i] & 1048575", "i64"), ("int_mod(a0[i], 10) * 257", "u8"), ("a0[i]", "i64"))]
    assert [2 * count / counts[0] for count in counts] == [2, 2, 0, 5]


def test_sixteen_bits_are_enough_for_short_numbers():
    """No product is wider, and of a remainder there is one more."""
    step = "    for i in range(n0):\n        o0[i] = {}(a0[i], 1000)\n"
    for t in ("i16", "u16"):
        quotient, rest = (_text_of(step.format(name), t) for name in ("int_floordiv", "int_mod"))
        assert quotient.count("udiv i16") == rest.count("udiv i16") == rest.count("mul i16") == rest.count(" mul ") > 0
        assert " mul " not in quotient
    bytes_ = _text_of(step.replace("1000", "7").format("int_floordiv"), "i8")
    assert bytes_.count(" mul ") == bytes_.count("mul i16") > 0


def test_a_carried_number_is_divided_once():
    """A loop of steps has no vectors: LLVM's product of 64 bits is faster than four of halves."""
    flat = _text_of("    for i in range(n0):\n        o0[i] = int_mod(a0[i], 10)\n")
    carried = _text_of("    h = 1\n    for i in range(n0):\n        h = int_mod(wrap_mul(h, 3), 10)\n    o0[0] = h\n")
    folded = _text_of("    h = 0\n    for i in range(n0):\n        h = wrap_add(h, int_mod(a0[i], 10))\n"
                      "    o0[0] = h\n")
    assert ["srem" in t for t in (flat, carried, folded)] == [False, True, False]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_remainders_of_floats(dtype):
    with np.errstate(all="ignore"):
        x = (R.normal(size=20000) * 10.0 ** R.uniform(-8, 18, 20000)).astype(dtype)
        y = (R.normal(size=20000) * 10.0 ** R.uniform(-6, 6, 20000)).astype(dtype)
        odd = np.array([0.0, -0.0, 1, -1, 0.5, 3, np.inf, -np.inf, np.nan, 5e-324, 1e-45, 1e38, 1e308]).astype(dtype)
        x, y = np.concatenate([x, np.repeat(odd, 13)]), np.concatenate([y, np.tile(odd, 13)])
        for d in (y, np.full_like(y, 0.1), np.full_like(y, 2 * np.pi)):
            found = sc.jit(lambda a, b: (a % b, sc.fmod(a, b), a // b))(x, d)
            for got, want in zip(found, (x % d, np.fmod(x, d), x // d), strict=True):
                np.testing.assert_array_equal(got, want)
                known = ~np.isnan(want)
                np.testing.assert_array_equal(np.signbit(got)[known], np.signbit(want)[known])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n", [6, 13, 64, -7, -20, 65])
def test_whole_powers(dtype, n):
    """As products they are right to the last place."""
    x = np.concatenate([R.uniform(-2, 2, 300), R.uniform(0.9, 1.1, 300), 10.0 ** (R.uniform(-30, 30, 300) / n)])
    x = x.astype(dtype)
    f = sc.jit(lambda v: v**n)
    with mpmath.workprec(200):
        want = [mpmath.mpf(float(v)) ** n for v in x]
        with np.errstate(over="ignore"):
            unit = np.spacing(np.abs(np.array([float(w) for w in want], dtype)))
        worst = max(abs(float((float(g) - w) / float(u))) for g, w, u in zip(f(x), want, unit, strict=True))
    assert worst < (0.51 if abs(n) <= 64 else 2)
    odd = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 1e38, -1e38, 1e-320, 1e300, -1e300])
    with np.errstate(all="ignore"):
        odd = odd.astype(dtype)
        want = odd**n
    np.testing.assert_allclose(f(odd), want, rtol=1e-5)
    np.testing.assert_array_equal(np.signbit(f(odd)), np.signbit(want))


@pytest.mark.parametrize("grid", [
    lambda xp, n: xp.arange(n).astype("float64"), lambda xp, n: xp.arange(n) * 1.0, lambda xp, n: xp.arange(9.0)])
def test_places_among_counts(grid):
    """Are rounded numbers: at the ends, beyond them, and of what is no number."""
    keys = np.concatenate([R.uniform(-3, 12, 200), np.arange(-2.0, 12), [np.nan, np.inf, -np.inf, -0.0, 1e300, -1e300]])

    def formula(xp, t, x):
        among = grid(xp, x.shape[0])
        return (*(xp.searchsorted(among, t, side=side) for side in ("left", "right")), xp.interp(t, among, x))

    for n in (9,) if len(grid(np, 2)) == 9 else (1, 2, 9):
        x = R.normal(size=n)
        for got, want in zip(sc.jit(lambda t, x: formula(sc, t, x))(keys, x), formula(np, keys, x), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-13)
    ints = np.array([-(2**63), -1, 0, 3, 4, 2**63 - 1])
    places = sc.jit(lambda t, x: sc.searchsorted(sc.arange(x.size), t, side="right"))(ints, np.zeros(4))
    np.testing.assert_array_equal(places, np.searchsorted(np.arange(4), ints, side="right"))


def test_points_of_other_lengths():
    f = sc.compile(sc.interp(sc.vector("t"), sc.vector("a"), sc.vector("b")))
    with pytest.raises(sc.ShapeError, match="must equal"):
        f(np.ones(2), np.arange(3.0), np.arange(4.0))


@pytest.mark.parametrize("dtype", ["float64", "int64", "uint64", "uint8", "bool"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_searches_of_random_and_sorted_keys(dtype, side):
    search = sc.jit(lambda a, k: sc.searchsorted(a, k, side=side))
    for m in (0, 1, 7, 64, 65, 1000):
        if dtype == "float64":
            a = np.concatenate([R.normal(size=m), [np.nan, np.inf, -np.inf, 1.0, 1.0] * (m > 7)])
        elif dtype == "bool":
            a = R.integers(0, 2, m).astype(bool)
        else:
            ends = np.iinfo(dtype)
            a = R.integers(ends.min, ends.max, m, dtype=dtype, endpoint=True)
            a[: min(m, 2)], a[max(m - 2, 0) :] = ends.min, ends.max
        a = np.sort(a)
        keys = np.concatenate([a, R.permutation(a), np.array([0, 1], dtype), a[::-1], np.sort(np.tile(a, 2))])
        np.testing.assert_array_equal(search(a, keys), np.searchsorted(a, keys, side=side))
