"""NumPy's functions with their keywords, over dtypes, with sizes known and not: equal, or refused where NumPy does."""

import inspect
import itertools
import warnings
from collections import Counter

import numpy as np
import pytest
import scipy.linalg

import symc as sc
from symc.numpy_api.__main__ import callables, lacking, twin
from symc.numpy_api.absent import ABSENT, REASONS
from symc.numpy_api.dispatch import run_function
from symc.numpy_api.padding import MODES
from symc.numpy_api.quantiles import METHODS
from symc.testing.fuzz.arguments import functions
from tests.numpy_api.numpy_compare import evaluate, outcome

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4))
I = RNG.integers(0, 9, (3, 4))
MASK, V, W = X > 0, RNG.normal(size=9), RNG.random(9)
NAN = np.where(I > 6, np.nan, X)
NAN[2] = np.nan
Z = X.round() + 1j * I
#: (below, above) and diagonals of 5 columns, the main one the greatest.
BANDS = [((low, up), np.where(np.arange(low + up + 1)[:, None] == up, 6, 1) + 0.3 * RNG.normal(size=(low + up + 1, 5)))
         for low, up in ((1, 1), (2, 1), (0, 2), (3, 0), (0, 0))]
RIGHT = RNG.normal(size=(5, 3))
REAL = [X, NAN, I, I.astype("u1"), X.astype("f4"), MASK]
AXES = [{}, {"axis": 0}, {"axis": 1, "keepdims": True}, {"axis": (0, 1), "keepdims": True}]


def every(**choices):
    """All combinations of keywords; None leaves one out."""
    return [{k: v for k, v in zip(choices, c, strict=True) if v is not None}
        for c in itertools.product(*choices.values())]


def changed(name):
    """A function that changes its argument, as one that gives the changed value."""
    def call(a, *args, **kwargs):
        a = a.copy()
        getattr(np, name)(a, *args, **kwargs)
        return a
    return call


def on(function, operands, *keywords, rest=(), own=None, known=False):
    """Calls of a function with each operand and each choice of keywords."""
    return [(function, (a, *rest), k, own, known) for a in operands for k in keywords]


def masked(*functions, more=({},)):
    kw = [{**a, **m, "where": w} for a in AXES for m in more for w in (MASK, MASK[0])]
    return [c for f in functions for c in on(f, REAL, *kw)]


CASES = {
    "where": masked(np.sum, np.prod, np.mean, np.var, np.std, np.any, np.all, np.nansum, np.nanprod, np.nanmean,
                    np.nanvar, np.nanstd),
    "where of extremes": masked(np.max, np.min, np.nanmax, np.nanmin, more=({}, {"initial": 1})),
    "initial": [c for f in (np.sum, np.prod, np.max, np.min, np.nansum, np.nanprod, np.nanmax, np.nanmin)
                for c in on(f, REAL, *every(initial=[0, 2], axis=[None, 1]))],
    "where that does not fit": on(np.sum, [X], {"where": I}, {"where": np.ones((2, 3, 4), bool)}),
    "quantile": [c for f in (np.quantile, np.nanquantile) for q in (0.3, [0, 0.5, 1], np.array([[0.25, 0.9]]))
                 for c in on(f, [X, NAN, I], *every(method=METHODS, axis=[1]), *every(
                     method=["inverted_cdf", "linear"], axis=[None, 1], keepdims=[None, True]), rest=(q,))],
    "weights": [c for f in (np.quantile, np.nanquantile) for q in (0.3, np.array([0.25, 1.0]))
                for c in on(f, [X, NAN, I], *every(method=["inverted_cdf", "linear"], axis=[None, 0, 1],
                    weights=[I + 0.5]),
                            rest=(q,))],
    "wrong weights": on(np.quantile, [X, I], *every(method=["inverted_cdf"], axis=[1], weights=[I * 0, -I - 1]),
        rest=(0.3,)),
    "wrong points": on(np.quantile, [X], {}, rest=(np.array([0.2, 1.2]),)),
    "median": [c for f in (np.median, np.nanmedian) for c in on(f, REAL[:4], *AXES)]
    + [c for f in (np.percentile, np.nanpercentile) for c in on(f, REAL[:4], *AXES, rest=([30, 60],))],
    "cov": on(np.cov, [X, I, Z, X[0]], *every(fweights=[None, [1, 2, 0, 3], I[0]], aweights=[None, W[:4]],
        ddof=[None, 0, 2])),
    "cov: errors": on(np.cov, [X], {"fweights": [1.5, 1, 1, 1]}, {"fweights": [1, 2]}, {"aweights": [-1.0, 1, 1, 1]},
        {"aweights": V[:4]},
                      {"ddof": 0.5}) + on(np.corrcoef, [X], {"dtype": "f8"}),
    "pad": on(np.pad, [X, I, I.astype("u1"), MASK], *every(mode=MODES.keys() - {"empty"}), rest=(((1, 2), (3, 0)),))
    + on(np.pad, [X, I, I.astype("u1"), MASK, Z], *every(mode=["reflect", "symmetric"], reflect_type=["odd", "even"]),
         rest=(2,))
    + on(np.pad, [X, I], *every(mode=["mean", "median", "maximum", "minimum"], stat_length=[1, ((1, 2), (2, 9))]),
         rest=(2,))
    + on(np.pad, [X, I], *every(mode=["linear_ramp"], end_values=[3, ((1, 2), (3, 4))]), rest=({-1: (2, 3)},))
    + on(np.pad, [X], {"mode": "edge", "stat_length": 2}, {"mode": "maximum", "stat_length": 0}, rest=(1,)),
    "pad far": on(np.pad, [X, I], *every(mode=["reflect", "symmetric", "wrap"]), rest=(((9, 14), (0, 23)),), known=True)
    + on(np.pad, [X, I, X[:1]], *every(mode=["reflect", "symmetric"], reflect_type=["odd"]), rest=(((9, 14), (0,
         23)),)),
    "spaces": on(np.geomspace, [V[:2] ** 2 + 1], *every(num=[4], dtype=[None, "f4", int], axis=[0, -1]), rest=(90,))
    + on(np.logspace, [V[:2]], *every(num=[4], base=[3, W[:2] + 1], dtype=[None, "f4"], axis=[0, -1]), rest=(2,)),
    "ediff1d": on(np.ediff1d, [X, I, I.astype("u1")], *every(to_begin=[None, 3, I[0]], to_end=[None, 2.5, [1, 2]])),
    "isin": on(np.isin, [I, X, MASK], *every(kind=[None, "sort", "table", "no"], invert=[None, True]), rest=(I[0],)),
    "by position": [(f, (X, *args), {}, None, False) for f, *args in [
        (np.sum, 0, None, None, True), (np.mean, 0, "f4", None, True), (np.max, 0, None, True), (np.clip, 0, 1, None),
        (np.std, 0, None, None, 1, True), (np.take, [0, 1], 0, None, "clip"), (np.cumsum, 0, None, None),
        (np.quantile, 0.3, 0, None, False, "hazen", True), (np.trace, 0, 0, 1, None, None), (np.dot, X.T, None),
        (np.nansum, 0, None, None, True), (np.all, 0, None, True), (np.round, 2, None), (np.fix, None)]],
    "histogram": on(np.histogram, REAL[:1] + REAL[2:], *every(bins=[None, 4, [0, 1, 2.5, 3], np.array([-1, 0, 5.0]),
        0, [3, 1]],
                    range=[None, (0, 3), (1, 1)], density=[None, True], weights=[None, I])) + on(np.histogram, [NAN],
                        {}),
    "histogram2d": on(np.histogram2d, [V], *every(bins=[None, 4, [3, 4], [0, 0.5, 1.0]], density=[None, True],
                                                  weights=[None, W]), rest=(W,))
    + on(np.histogramdd, [[V, W, V * W]], *every(bins=[3, (2, 3, 4)], density=[None, True])),
    "polynomials": on(np.polyfit, [V], *every(w=[None, W], cov=[None, True, "unscaled"]), rest=(W, 2))
    + on(np.polyfit, [V], {}, rest=(np.stack([V, W], 1), 1)) + on(np.poly, [V[:4], X[:, :3]], {}, known=True)
    + on(np.polydiv, [V[:5], I[0] + 1], {}, rest=(W[:2],), known=True) + on(np.polydiv, [V[:2]], {}, rest=(W[:3],),
         known=True),
    "replacing": [c for name, args, kws in [
        ("put", (np.array([0, 3, -1]), W[:2]), every(mode=[None, "wrap", "clip"])), ("putmask", (MASK, W[:3]), [{}]),
        ("place", (MASK, W[:3]), [{}]), ("copyto", (I,), every(where=[None, MASK])), ("copyto", (Z,), [{}]),
        ("put_along_axis", (np.argsort(X, 1)[:, :2], W[:2], 1), [{}]), ("put_along_axis", (np.array([1, 5]), 7,
            None), [{}]),
    ] for c in on(changed(name), [X, I], *kws, rest=args, own=getattr(sc, name))]
    + [c for v in (5.0, W[:2]) for c in on(changed("fill_diagonal"), [X, X.T.copy(), np.zeros((8, 2))],
                                           *every(wrap=[True, False]), rest=(v,), own=sc.fill_diagonal)],
    "windows": [(f, (n, *more), {}, getattr(sc, f.__name__), False) for n in (0, 1, 2, 5, 8) for f, *more in
                [(np.bartlett,), (np.hanning,), (np.hamming,), (np.blackman,), (np.kaiser, 8.6)]],
    "i0": on(np.i0, [np.append(V * 9, [0, 8, 7.9, 700]), V.astype("f4"), I, Z], {}),
    "assembling": on(np.resize, [X, I], {}, rest=((5, 7),)) + on(np.packbits, [I, MASK, X], *every(axis=[None, 0, 1],
        bitorder=["big",
                     "little"])) + on(np.unpackbits, [I.astype("u1"), I], *every(axis=[None, 0, 1], bitorder=["big",
                         "little"]))
    + on(np.unpackbits, [I.astype("u1")], *every(axis=[None, 1], count=[3, -3, 99]), known=True)
    + [(np.apply_over_axes, (np.sum, X, [0, 1]), {}, sc.apply_over_axes, False),
       (np.apply_along_axis, (lambda v: v * v[0], 1, X), {}, sc.apply_along_axis, False),
       (np.fromfunction, (lambda i, j: i * 2 + j, (3, 4)), {}, sc.fromfunction, False)],
    "complex order": [c for f in (np.sort, np.argsort) for c in on(f, [Z, np.where(I > 6, np.nan, Z)],
                                                                   *every(axis=[0, 1, -1], kind=["stable"]))]
    + on(np.sort_complex, [Z, X, I, I.astype("u1")], {}),
    "integers": [c for f in (np.gcd, np.lcm) for d in ("i1", "i8", "u1", "u8")
                 for c in on(f, [np.array([0, 0, 12, 18, 127, 7], d)], {}, rest=(np.array([0, 5, 18, 12, 126, 1],
                     d),), own=f)],
    "patterns": [(getattr(scipy.linalg, n), args, k, getattr(sc.linalg, n), known) for n, args, k, known in [
        ("circulant", (V,), {}, False), ("hankel", (V,), {}, False), ("hankel", (V[:3], W), {}, False),
        ("companion", (V,), {}, False), ("hilbert", (4,), {}, False), ("polar", (X,), {}, False),
        ("polar", (Z,), {"side": "left"}, False), ("pinvh", (X.T @ X,), {}, False),
        ("orthogonal_procrustes", (X, X * 2 + 1), {}, True),
        *[("solve_banded", (lu, ab, b), {}, False) for lu, ab in BANDS for b in (RIGHT[:, 0], RIGHT, RIGHT * 1j)],
        *[("solveh_banded", (ab, b), {"lower": bool(low)}, True) for (low, up), ab in BANDS if 0 in (low, up)
          for b in (RIGHT[:, 0], RIGHT)]]],
}  # fmt: skip


def symbolic(x, leaves, arrays, sizes):
    if isinstance(x, list | tuple):
        return type(x)(symbolic(i, leaves, arrays, sizes) for i in x)
    if not isinstance(x, np.ndarray):
        return x
    arrays.append(x)
    shape = tuple(f"n{len(leaves)}_{k}" for k in range(x.ndim)) if sizes else x.shape
    leaves.append(sc.input(f"x{len(leaves)}", x.dtype, shape))
    return leaves[-1]


@pytest.mark.parametrize("sizes", [False, True], ids=["known", "any size"])
@pytest.mark.parametrize("name", CASES)
def test_keywords(name, sizes):
    """Calls of a function take turns: one with sizes that are known, the next with sizes that are not."""
    wrong, turns = [], Counter()
    often = Counter(function for function, *_ in CASES[name])
    for function, args, kwargs, own, known in CASES[name]:
        turns[function] += 1
        if often[function] > 1 and turns[function] % 2 == sizes:
            continue
        want = error = None
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                want = function(*args, **kwargs)
            except Exception as e:
                error = e
        leaves, arrays = [], []
        a = symbolic(args, leaves, arrays, sizes and not known)
        k = {n: symbolic(v, leaves, arrays, sizes and not known) for n, v in kwargs.items()}
        run = (lambda: own(*a, **k)) if own else (lambda: run_function(function, a, k))  # noqa: B023
        kind, text = outcome(run, leaves, arrays, want, error)
        if kind != ("equal" if error is None else "refused"):
            wrong.append(f"{kind}: {text}; {getattr(function, '__name__', function)}({args}, {kwargs}), {error!r}")
    assert not wrong, f"{len(wrong)} of {len(CASES[name])}: {wrong[0]}"


# --- nothing is left out ----------------------------------------------------------------------------------------------


def test_every_callable_is_there_or_has_a_reason():
    names = callables()
    assert len(names) > 400
    assert not [n for n, f in names.items() if twin(n, f) is None and n not in ABSENT]
    there = [n for n in ABSENT if n not in names or twin(n, names[n]) is not None]
    assert not there, f"symc/numpy_api/absent.py has a reason for what is there: {there}"
    assert all(len(r) < 120 and "\n" not in r for r in REASONS)


def test_every_parameter_is_there():
    """But what the page names: of these all that matters is refused by name."""
    less = {n: lacking(f, own) for n, f in callables().items() if (own := twin(n, f)) is not None}
    assert {n: p for n, p in less.items() if p} == {"array": ["ndmax"], "einsum_path": ["einsum_call"],
                                                  "trim_zeros": ["axis"]}


def test_arguments_by_position_mean_what_numpy_means():
    """A position that has another name here is bound by NumPy's: no argument is taken for another."""
    x = sc.input("x", "float64", (3, 4))
    apart = 0
    for f in functions().values():
        ours = list(inspect.signature(twin("", f)).parameters)
        try:
            theirs = list(inspect.signature(f).parameters)
        except ValueError:
            continue
        apart += "out" in theirs and "out" not in ours
        if "out" in theirs and "out" not in ours and inspect.signature(f).parameters["out"].kind.name != "KEYWORD_ONLY":
            k = theirs.index("out")
            with pytest.raises(sc.SymcError, match=r"out=|take|choose|axes|needed|compress|dot|matrices|1 results"):
                run_function(f, (x, *[inspect.signature(f).parameters[p].default for p in theirs[1:k]], np.zeros(3)),
                    {})
    assert apart > 15


# --- words of errors --------------------------------------------------------------------------------------------------

P, M = sc.input("p", "float64", (3, 4)), sc.input("m", "bool", (3, 4))


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: np.add(P, P, where=M), r"np\.add\(where=\).*\n(.*\n)*.*sc\.where\(mask"),
        (lambda: sc.add(P, P, where=M), r"add\(where=\) without out is not defined"),
        (lambda: sc.add(P, P, np.zeros((3, 4))), r"add\(out=\) is not possible"),
        (lambda: np.add(P, 1, casting="no", dtype="f4"), "casting='no' with dtype=float32"),
        (lambda: np.add(P, P, dtype="i8"), "dtype=int64"),
        (lambda: P.astype("i8", casting="safe"), "casting='safe' does not allow"),
        (lambda: np.from_dlpack(P), "the array of a symbolic value"),
        (lambda: np.add.at(P, 0, 1), r"np\.add\.at is not available.*\n(.*\n)*.*x\.at\[i\]\.add"),
        (lambda: np.hypot.reduceat(P, [0, 1]), "reduceat"),
        (lambda: np.logaddexp.reduce(P, where=M), r"logaddexp\(where=\)"),
        (lambda: np.sum(P, 0, None, np.zeros(4)), r"np\.sum\(out=\) is not possible"),
        (lambda: np.put(P, [0], 1.0), r"symbolic values never change.*\n(.*\n)*.*x\.at\[index\]\.set"),
        (lambda: np.fill_diagonal(P, 0), "fill_diagonal changes its argument"),
        (lambda: np.shares_memory(P, P), "memory is decided"),
        (lambda: sc.histogram(P, bins="stone"), "one of sqrt, sturges"),
        (lambda: sc.max(P, where=M), "give initial="),
    ],
)
def test_errors(call, said):
    with pytest.raises(sc.SymcError, match=said):
        call()


def test_masks_in_methods_of_ufuncs():
    for call in (lambda x, m: np.add.reduce(x, where=m), lambda x, m: np.maximum.reduce(x, 1, where=m, initial=-9.0),
                 lambda x, m: np.logical_and.reduce(x, where=m), lambda x, m: np.add(x, m, casting="safe",
                     subok=False)):  # fmt: skip
        (got,) = evaluate([call(P, M)], [P, M], [X, MASK])
        np.testing.assert_allclose(got, call(X, MASK))


def test_the_standards_words():
    """What the array API says of a namespace and of arrays."""
    space = P.__array_namespace__(api_version="2024.12")
    assert space.__array_api_version__ == sc.__array_api_version__ == "2024.12"
    info = space.__array_namespace_info__()
    assert info.capabilities()["boolean indexing"] and info.default_device() in info.devices()
    assert info.dtypes(kind="real floating") == {"float32": np.float32, "float64": np.float64}
    assert P.device == "symbolic" and P.astype("f4", copy=False).dtype == np.float32
    np.testing.assert_array_equal(np.from_dlpack(sc.asarray([1.0, 2]) + 1), [2, 3])
    np.testing.assert_array_equal(np.asarray(sc.from_dlpack(V)), V)


def test_constants_have_roots():
    np.testing.assert_allclose(np.sort_complex(np.asarray(sc.roots([0, 1, 2, 3, 0]))), np.sort_complex(np.roots([0,
        1, 2, 3, 0])))
    p = sc.input("q", "float64", (4,))
    q = np.array([2.0, 1, 3, 4])
    (got,) = evaluate([sc.roots(p)], [p], [q])
    np.testing.assert_allclose(np.sort_complex(got), np.sort_complex(np.roots(q)))


@pytest.mark.parametrize("make", [
    lambda x: sc.sum(x**2, where=x > 0), lambda x: sc.var(x, where=x > 0), lambda x: sc.nanmedian(x) ** 2,
    lambda x: sc.sum(sc.pad(x, 5, mode="reflect", reflect_type="odd") ** 2), lambda x: sc.sum(sc.cov(x, aweights=[1,
        2, 3, 4.0])),
    lambda x: sc.sum(sc.i0(x)), lambda x: sc.sum(sc.quantile(x, 0.3, axis=1) ** 2),
    lambda x: sc.sum(sc.apply_along_axis(lambda v: v * v[0], 1, x)), lambda x: sc.sum(sc.linalg.polar(x)[1] ** 2),
    lambda x: sc.sum(sc.histogram(x, 3, (-1, 1), weights=x**2)[0] ** 2),
])  # fmt: skip
def test_gradients(make):
    sc.verify_grad(make, [X])
