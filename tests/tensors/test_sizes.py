"""Sizes that are not known while the graph is built: what they say of themselves, and what functions make of them."""

import itertools
import operator
import re
import warnings

import numpy as np
import pytest

import symc as sc
from symc.ir import size_extremes
from symc.ir.dim import size_name
from symc.ir.parse import parse
from symc.ir.size_values import evaluate
from symc.numpy_api.quantiles import METHODS
from symc.opt import DEFAULT, optimize
from symc.tensors.sizes import SymbolicSize, user_size
from symc.testing.fuzz import sized

NAMES = ("n", "m", "k")
TRIED = [dict(zip(NAMES, numbers, strict=True)) for numbers in itertools.product((0, 1, 2, 3, 5), repeat=3)]
COMPARISONS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)


def number(form, sizes):
    """What a random expression is in Python's integers."""
    if not isinstance(form, tuple):
        return sizes.get(form, form)
    op, a, b = form
    return op(number(a, sizes), number(b, sizes))


def size(form):
    """The same as a size of the graph."""
    if isinstance(form, str):
        return SymbolicSize(size_name(form))
    if not isinstance(form, tuple):
        return form
    op, a, b = form
    if op in (min, max):
        which = size_extremes.minimum if op is min else size_extremes.maximum
        return user_size(which(*[x.dim if isinstance(x, SymbolicSize) else x for x in (size(a), size(b))]))
    return op(size(a), size(b))


def random_form(rng, depth):
    if depth == 0 or rng.random() < 0.15:
        return str(rng.choice(NAMES)) if rng.random() < 0.6 else int(rng.integers(-3, 5))
    ops = (operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, min, max)
    return ops[rng.integers(len(ops))], random_form(rng, depth - 1), random_form(rng, depth - 1)


def tabulated(form):
    """The numbers for all sizes; None where Python has none."""
    out = []
    for sizes in TRIED:
        try:
            out.append(number(form, sizes))
        except ZeroDivisionError:
            out.append(None)
    return out


def answer(compare, a, b):
    try:
        return compare(a, b)
    except sc.SymbolicValueError:
        return None


@pytest.mark.parametrize("seed", range(4))
def test_comparisons_that_answer_agree_with_integers(seed):
    rng = np.random.default_rng(seed)
    answers = 0
    for _ in range(250):
        forms = random_form(rng, 3), random_form(rng, int(rng.integers(3)))
        try:
            a, b = map(size, forms)
        except ZeroDivisionError:
            continue
        if not isinstance(a, SymbolicSize):
            a, b, forms = b, a, forms[::-1]
        if not isinstance(a, SymbolicSize):
            continue
        rows = [(x, y) for x, y in zip(*map(tabulated, forms), strict=True) if x is not None and y is not None]
        for compare in COMPARISONS:
            said = answer(compare, a, b)
            if said is not None:
                answers += 1
                assert all(compare(x, y) is said for x, y in rows), (compare, str(a), str(b), said)
        for sizes, x in zip(TRIED, tabulated(forms[0]), strict=True):
            if x is not None:  # as far as a division is exact, it has a value where Python's has none
                assert evaluate(a.dim, sizes) == x, (str(a), sizes)
    assert answers > 50


def test_what_is_compared_with_a_size():
    x, y = sc.input("x", "f8", ("n", 3)), sc.input("y", "f8", ("m", 3))
    n, m = x.shape[0], y.shape[0]
    assert x.shape == x.shape and n == n + 0 and n != n + 1 and n != -1 and n + 1 != 0 and 2 * n + m >= n
    assert n != 2.5 and n != float("nan") and n != float("inf") and n != 1j and n != None and n != "n"  # noqa: E711
    assert x.shape != () and -1 not in x.shape and None not in x.shape and bool(n + 1)
    assert isinstance(n == sc.scalar("q"), sc.Tensor) and isinstance(np.asarray([1, 2]) == n, sc.Tensor)
    for ask in (lambda: n == 3, lambda: n != 3, lambda: n == np.int64(3), lambda: n == 2.0, lambda: n == True,  # noqa: E712
                lambda: n == m, lambda: x.shape == y.shape, lambda: n in (1, 2), lambda: 1 in x.shape, lambda: not n,
                lambda: x.size == 0, lambda: n % 2 == 0, lambda: n in {1, 2}, lambda: {x.shape, y.shape},
                lambda: x.shape.index(3), lambda: (n - 5) // 2 >= 0, lambda: min(n, m), lambda: n // 2 == m):
        with pytest.raises(sc.SymbolicValueError, match="not known while the graph is built"):
            ask()


# --- ordinary functions of NumPy, traced without knowing sizes --------------------------------------------------------


def even_median(x):
    s = np.sort(x)
    k = s.shape[0] // 2
    return (s[k - 1] + s[k]) / 2 if s.shape[0] % 2 == 0 else s[k]


def quantile_by_hand(x):
    s, n = np.sort(x), x.size
    low = (n - 1) // 4
    return s[low] if (n - 1) % 4 == 0 else (s[low] + s[low + 1]) / 2


def padded_to_even(x):
    return np.concatenate([x, np.zeros(1)]) if len(x) % 2 else x


def column_count(a):
    return a if a.shape[-1] == 3 else a * 2


def mean_or_nothing(x):
    return np.float64(0.0) if x.size == 0 else x.mean()


def cross_or_dot(x, y):
    return np.cross(x, y) if x.shape[-1] in (2, 3) else x * y


def unique_shapes(x, y):
    return x + 1 if len({np.shape(x), np.shape(y)}) == 1 else x


def weights_by_size(x):
    return {1: 1.0, 2: 0.5}.get(x.shape[0], 0.25) * x


def blocks_of_two(x):
    return x.reshape(-1, 2).sum(1) if x.shape[0] % 2 == 0 else x


def smoothed(x):
    return x if x.shape[0] < 3 else (x[:-2] + x[1:-1] + x[2:]) / 3


def halves(x):
    k = x.shape[0] // 2
    return x[:k] - x[::-1][:k]


def fold_in_the_middle(x):
    n = x.shape[0]
    return x[: n // 2] + x[n - n // 2 :]


def tall_or_wide(a):
    return a.T @ a if a.shape[0] >= a.shape[1] else a @ a.T


def square_or_not(a):
    return np.trace(a) if a.shape[0] == a.shape[1] else a.sum()


def all_but_last_three(x):
    return x[: x.shape[0] - 3]


def first_of_longest(x, y):
    return max(x, y, key=len)[0]


def nyquist(x):
    n = x.shape[-1]
    return x[: n // 2 + 1] if n % 2 == 0 else x[: (n + 1) // 2]


def next_power_of_two(x):
    n = 1
    while n < x.shape[0]:
        n *= 2
    return np.zeros(n) + x.sum()


def loop_over_rows(x):
    total = 0.0
    for k in range(x.shape[0]):
        total = total + x[k] * k
    return total


def common_length(x, y):
    n = min(len(x), len(y))
    return x[:n] * y[:n]


def step_of_grid(x):
    return np.linspace(0.0, 1.0, x.shape[0])


def bessel(x):
    return ((x - x.mean()) ** 2).sum() / max(x.size - 1, 1)


def one_row_is_a_vector(a):
    return a[0] if a.shape[0] == 1 else a


def bool_of_a_size(x):
    return x.sum() / x.size if x.size else x.sum()


def is_empty(x):
    return x.sum() if not x.shape[0] else x.max()


def order_of_shapes(x, y):
    return x.sum() if x.shape <= y.shape else y.sum()


def shifted_by_half(x):
    return np.roll(x, x.shape[0] // 2)


def counted(x):
    return x * x.shape.count(3)


def same_shape(x, y):
    return x + y if np.shape(x) == np.shape(y) else x


def tiled_to(x, y):
    return np.tile(x, y.shape[0] // x.shape[0] if y.shape[0] % x.shape[0] == 0 else 1)


def centred(x):
    n = x.shape[0]
    return np.arange(n) - (n - 1) / 2 + 0 * x


def last_third(x):
    return x[-(x.shape[0] // 3) :]


ORDINARY = [f for f in list(globals().values()) if getattr(f, "__module__", "") == __name__ and f.__doc__ is None
            and f.__name__ not in ("answer", "random_form") and not f.__name__.startswith("test_")]  # fmt: skip
LENGTHS = (0, 1, 2, 3, 4, 5, 8)


def outcome(call):
    """The result, or the error."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return call(), None
        except Exception as e:
            return None, e


@pytest.mark.parametrize("f", ORDINARY, ids=lambda f: f.__name__)
def test_ordinary_functions_are_right_or_refused(f):
    """Traced with sizes that are not known, each gives what NumPy gives, or an error of symc's."""
    names = f.__code__.co_varnames[: f.__code__.co_argcount]
    leaves = [sc.input(k, "f8", (f"{k}0", f"{k}1")[: 2 if k == "a" else 1]) for k in names]
    made, error = outcome(lambda: sc.compile(f(*leaves), leaves, mode="reference"))
    jitted = sc.jit(f, mode="reference")
    assert error is None or isinstance(error, sc.SymcError), error
    for k, j in itertools.product(LENGTHS, LENGTHS if len(leaves) > 1 or "a" in names else (0,)):
        given = [np.random.default_rng(k).normal(size=(k, j)[: t.ndim]) for t in leaves[:1]]
        given += [np.random.default_rng(j).normal(size=j) for _ in leaves[1:]]
        want, mistake = outcome(lambda given=given: f(*given))
        for g in [made, jitted] if made else [jitted]:
            got, error = outcome(lambda given=given, g=g: g(*given))
            assert error is None or (isinstance(error, sc.SymcError) and not isinstance(error, sc.InternalError)), error
            if mistake is None and error is None:
                np.testing.assert_allclose(got, want, rtol=1e-12, err_msg=f"{f.__name__} of {k}, {j}")


def test_there_are_enough_ordinary_functions():
    assert len(ORDINARY) >= 25


# --- every function at the sizes 0, 1, 2, 3 ---------------------------------------------------------------------------

#: Functions that are not compared, by reason.
NOT_COMPARED = {
    "no numbers": "empty empty_like", "any order": "argpartition partition unique_values",
    "in NumPy they change an argument": "put putmask place copyto fill_diagonal put_along_axis",
    "a list becomes a list": "trim_zeros", "of no elements one nan, whatever is asked": "nanquantile nanpercentile",
    "views": "broadcast_arrays",
    "an axis of unknown size stays": "squeeze cov corrcoef", "residuals of unknown rank": "linalg.lstsq",
    "a shape is found from numbers": "linalg.tensorsolve", "rounding": "linalg.cond", "the integer 0": "reciprocal",
    "leading zeros": "polymul", "no values": "common_type result_type can_cast isdtype shape",
}  # fmt: skip
#: Forms of every function that are run, of those that can be.
FORMS_EACH = 3


def forms(name, function):
    """Expressions with a function that both NumPy and symc take, with the compiled function of each."""
    found, rng = 0, np.random.default_rng(len(name))
    for text in rng.permutation(sized.CALLS):
        if outcome(lambda text=text: sized.run(text, function, sized.arrays(3, 2)))[1] is not None:
            continue
        made, error = outcome(lambda text=text: compiled(text, sized.ours(name), "reference"))
        assert not isinstance(error, sc.InternalError | RecursionError | KeyError | AssertionError), (name, text, error)
        if made is not None:
            found += 1
            yield str(text), made
        if found == FORMS_EACH:
            return


def compiled(text, f, mode):
    leaves = sized.inputs()
    made = sized.run(text, f, leaves)
    return sc.compile(made, list(leaves.values()), mode=mode) if any(isinstance(y, sc.Tensor) for y in made) else None


def compare(text, f, g, most=2):
    """At all sizes: what NumPy gives, or an error of symc's."""
    for n, m in sized.sizes(most):
        given = sized.arrays(n, m)
        want, mistake = outcome(lambda given=given: sized.run(text, f, given))
        got, error = outcome(lambda given=given: g(*given.values()))
        assert error is None or isinstance(error, sc.SymcError), (text, n, m, error)
        assert not isinstance(error, sc.InternalError), (text, n, m, error)
        if mistake is None and error is None:
            assert len(got) == len(want)
            for a, b in zip(got, want, strict=True):
                assert np.shape(a) == np.shape(b), (text, n, m, a, b)
                np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12, err_msg=f"{text} at {n}, {m}")


def made_of_calls(g):
    """Whether sizes in a function are more than polynomials: then its kernels are run, too."""
    return re.search(r"\b(floordiv|mod|min|max)\(", g.dump("input"))


PARTS = 48


@pytest.mark.parametrize("part", range(PARTS))
def test_every_function_at_small_sizes(part):
    for name, function in list(sized.functions().items())[part::PARTS]:
        if name not in " ".join(NOT_COMPARED.values()).split() and callable(function):
            for text, g in forms(name, function):
                try:
                    compare(text, function, g)
                    if made_of_calls(g):
                        compare(text, function, compiled(text, sized.ours(name), "default"))
                except AssertionError as e:
                    raise AssertionError(f"f = {name}: {e}") from None


@pytest.mark.parametrize("part", range(8))
def test_every_read_at_small_sizes(part):
    for text in sized.READS[part::8]:
        g, error = outcome(lambda text=text: compiled(text, None, "reference"))
        assert error is None or (isinstance(error, sc.SymcError) and not isinstance(error, sc.InternalError)), error
        if g is not None:
            compare(text, None, g, most=4)
            if made_of_calls(g):
                compare(text, None, compiled(text, None, "default"))


LARGE = ["f(x, m)", "f(x, (m,))",
         "f(x, (m, -1))", "f(x, (1, m))", "f(a, m, 0)", "f(a, (m, 1), (0, 1))", "f(m)", "f(m, 3)"]
OF_SIZES = "zeros ones empty eye tri identity arange full broadcast_to reshape pad tile repeat roll take".split()


@pytest.mark.parametrize("large", [2**63, 2**64, -(2**64)])
def test_numbers_that_no_size_is(large):
    """They are refused with an error of symc's, or are further away than anything."""
    cases = [(t, None) for t in sized.READS if re.search(r"\bm\b", t)]
    for text, f in cases + [(t, sized.ours(name)) for t in LARGE for name in OF_SIZES]:
        leaves = sized.inputs()
        made, error = outcome(lambda: sized.run(text, f, {**leaves, "m": large}))  # noqa: B023
        if error is None and any(isinstance(y, sc.Tensor) for y in made):
            g, error = outcome(lambda: sc.compile(made, list(leaves.values()), mode="reference"))  # noqa: B023
            if g is not None:
                _, error = outcome(lambda: g(*sized.arrays(2, 1).values()))  # noqa: B023
        assert not isinstance(error, sc.InternalError | OverflowError), (f, text, error)


@pytest.mark.parametrize("n", range(6))
def test_gradients_of_pieces_without_elements(n: int) -> None:
    """A piece that begins where it ends follows itself: pieces were put side by side for ever."""
    x = sc.input("x", "float64", shape=(n, 2))
    parts = sc.array_split(x, 4)
    f = sc.compile(sc.grad(sum(sc.sum(p * p) * (k + 1) for k, p in enumerate(parts)), x), [x])
    a = np.arange(2.0 * n).reshape(n, 2)
    wanted = np.concatenate([2 * (k + 1) * p for k, p in enumerate(np.array_split(a, 4))])
    np.testing.assert_array_equal(f(a), wanted)


def test_a_reshape_of_a_repeated_array_without_elements() -> None:
    f = parse("""func @f(%x: i64[0]) -> (i64[0]) {
      %0 = broadcast %x {axes = (1,), shape = (0, 0)} : i64[0, 0]
      %1 = reshape %0 {shape = (0,)} : i64[0]
      return %1
    }""")
    for passes in (DEFAULT, "canonicalize"):
        assert optimize(f, passes, strict=True).function.body.results[0].shape == (0,)


@pytest.mark.parametrize("of", [lambda x, n, m: sc.ones(n // m) * 2, lambda x, n, m: sc.sum(x) * (n // m),
                                lambda x, n, m: x + n % m, lambda x, n, m: x[: n % m],
                                lambda x, n, m: sc.scan(lambda s, _: (s + n // m, None), 0, length=3)[0]])
def test_sizes_that_divide_by_a_size_of_0(of) -> None:
    x, y = sc.input("x", "float64", ("n",)), sc.input("y", "float64", ("m",))
    f = sc.compile(of(x, x.shape[0], y.shape[0]), [x, y])
    f(np.ones(6), np.ones(4))
    with pytest.raises(sc.ShapeError, match=r"divides by 0(.|\n)*m = 0"):
        f(np.ones(6), np.ones(0))


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "u1"])
def test_quantiles_along_an_axis_of_any_size(dtype):
    x, rng = sc.input("x", dtype, ("n",)), np.random.default_rng(0)
    cases = [(np.median, {})] + [(np.quantile, dict(q=q, method=m)) for q in (0.25, 0.9, 1, np.array([0.1, 0.5]))
                                 for m in METHODS]
    f = sc.compile([fn(x, **options) for fn, options in cases], [x])
    for n, nan in itertools.product((1, 2, 3, 4, 7, 50), (False, True)):
        a = rng.integers(-9 if dtype[0] != "u" else 0, 9, n).astype(dtype) * np.dtype(dtype).type(1)
        if nan and dtype[0] == "f":
            a[rng.integers(n)] = np.nan
        for (fn, options), got in zip(cases, f(a), strict=True):
            want = np.asarray(fn(a, **options))
            assert got.dtype == want.dtype, (fn, options)
            np.testing.assert_allclose(got, want, rtol=1e-12 if want.dtype == "f8" else 1e-5, err_msg=f"{options} {a}")
    with pytest.raises(sc.IndexingError):
        f(np.zeros(0, dtype))
