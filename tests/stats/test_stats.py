"""``sc.stats`` against ``scipy.stats``, over the parameters of ``stats_cases``; the functions are those of the
records. Where SciPy has fewer digits than is asked for, its density is integrated."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
import scipy.integrate
import scipy.stats

import symc as sc
from tests.stats.stats_cases import CONTINUOUS, DISCRETE, NUMBERS, SHAPES, illegal, points, quantiles

OF_X = ("pdf", "logpdf", "pmf", "logpmf", "cdf", "sf", "logcdf", "logsf")
OF_Q = ("ppf", "isf")
MOMENTS = ("entropy", "mean", "var", "std")
BAD_Q = [0.0, 1.0, -0.1, 1.1, np.nan]


def density(name: str) -> str:
    return "logpdf" if name in CONTINUOUS else "logpmf"


def place(name: str) -> tuple[float, ...]:
    """A location, and a scale if there is one."""
    return (-0.75, 2.5) if name in CONTINUOUS else (-3.0,)


def scipys(name: str, what: str, *args) -> np.ndarray:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return np.asarray(getattr(getattr(scipy.stats, name), what)(*args), "float64")


def build(name: str, dtype: str, whats: list[str], mode: str = "default") -> sc.CompiledFunction:
    """Functions of a distribution, with shapes, location and scale, as one compiled function."""
    d = sc.stats.DISTRIBUTIONS[name]
    x, q = sc.input("x", dtype, ("n",)), sc.input("q", dtype, ("m",))
    p = [sc.input(s, dtype, ()) for s in d.shapes] + [sc.input(f"at{k}", dtype, ()) for k in range(len(place(name)))]
    out = [getattr(d, w)(*([x] if w in OF_X else [q] if w in OF_Q else []), *p) for w in whats]
    assert all(o.dtype == dtype for o in out)
    return sc.compile(out, [x, q, *p], mode=mode)


def functions(name: str) -> list[str]:
    return [w for w in (*OF_X, *OF_Q, *MOMENTS) if w in sc.stats.DISTRIBUTIONS[name].functions()]


def integral(name: str, what: str, x: float, shapes: tuple) -> float:
    """What SciPy's density says of a probability or moment."""
    d = getattr(scipy.stats, name)(*shapes)
    a, b = d.support()
    if what in ("entropy", "mean", "var", "std"):
        m = d.mean() if what in ("var", "std") else 0.0
        f = {"entropy": lambda t: -d.pdf(t) * d.logpdf(t), "mean": lambda t: t * d.pdf(t)}.get(
            what, lambda t: (t - m) ** 2 * d.pdf(t))
        found = sum(scipy.integrate.quad(f, *ends, epsabs=0, epsrel=1e-11)[0]
                    for ends in zip([a, *d.ppf([0.01, 0.5, 0.99])], [*d.ppf([0.01, 0.5, 0.99]), b], strict=True))
        return found**0.5 if what == "std" else found
    low, high = (x, b) if what.endswith("sf") else (a, x)
    if name in DISCRETE:
        start = np.floor(low) + what.endswith("sf") if np.isfinite(low) else np.floor(high) - 600
        assert not high > start + 1e6 or np.isinf(high), "too many to add"
        ks = np.arange(start, np.floor(high) + 1 if np.isfinite(high) else start + 600)
        total = float(np.sum(d.pmf(ks[d.pmf(ks) > 0])))
    else:
        mid = [m for m in d.isf([1e-3, 1e-10, 1e-13, 1e-15]) if low < m < high]
        edges = [low, *mid, high]
        total = sum(scipy.integrate.quad(d.pdf, *e, epsabs=0, epsrel=1e-12)[0] for e in itertools.pairwise(edges))
    return float(np.log(total)) if what.startswith("log") else total


def agrees(found: np.ndarray, wanted: np.ndarray, rtol: float, atol: float = 0.0) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        near = np.abs(found - wanted) <= atol + rtol * np.abs(wanted)
        return near | (found == wanted) | (np.isnan(found) & np.isnan(wanted))


def settled(name: str, what: str, x: np.ndarray, shapes: tuple, found: float, rtol: float, quantile) -> bool:
    """True for a number that is right although SciPy has another."""
    at_inf = what in OF_X and np.isinf(x)
    if at_inf and what in ("pdf", "pmf", "logpdf", "logpmf"):
        return found == (-np.inf if "log" in what else 0.0)
    if what in OF_Q:
        return quantile(what, found, x)
    if what in ("mean", "var", "std") and np.isinf(found) or name in DISCRETE and what == "entropy" and found == 0:
        return True  # where SciPy says nan
    if what in MOMENTS and name == "genextreme":
        return bool(agrees(np.array(found), scipys("gumbel_r", what), 1e-7)) and abs(shapes[0]) < 1e-8
    if (name, shapes, what) == ("genextreme", (1.3,), "pdf"):
        return found == np.inf  # the limit at the upper end
    return bool(agrees(np.array(found), np.array(integral(name, what, x, shapes)), max(rtol, 1e-8), 1e-14))


def searched(name: str) -> list[str]:
    """Quantiles that no formula gives: they are searched for, in loops that evaluate probabilities."""
    stated = {"ppf", "isf", "logppf", "logisf"} & sc.stats.DISTRIBUTIONS[name].formulas.keys()
    return [] if stated else [w for w in functions(name) if w in OF_Q]


#: Of the others, quantiles that are searched for are found by the references: those loops are the same but for the
#: function inside, whose kernels take long to compile, and which is compiled for its own values as well.
SEARCHED_NATIVELY = [next(n for n in family if searched(n)) for family in (CONTINUOUS, DISCRETE)]


@pytest.mark.parametrize("name", NUMBERS)
def test_functions(name: str):
    apart = searched(name) if name not in SEARCHED_NATIVELY else []
    native = [w for w in functions(name) if w not in apart]
    whats, parts = [*native, *apart], [build(name, "float64", native)]
    if apart:
        parts.append(build(name, "float64", apart, "reference"))

    def f(*arguments) -> list[np.ndarray]:
        return [out for part in parts for out in part(*arguments)]

    at = (0.0, 1.0)[: len(place(name))]
    q = np.array([*quantiles(name), *BAD_Q])
    for shapes in SHAPES[name]:
        x = points(name, shapes)
        results = dict(zip(whats, f(x, q, *shapes, *at), strict=True))

        def quantile(what: str, found: float, q: float, shapes=shapes) -> bool:
            """The probability is right there: up to rounding of x, and for whole numbers not at the one before."""
            prob = whats.index("cdf" if what == "ppf" else "sf")
            here, before = (parts[0](np.full(1, k), np.full(1, q), *shapes, *at)[prob][0] for k in (found, found - 1))
            if name in DISCRETE:
                return bool(here >= q > before if what == "ppf" else here <= q < before)
            return abs(here - q) <= 1e-9 * q

        for what, found in results.items():
            args = x if what in OF_X else q if what in OF_Q else np.zeros(())
            wanted = scipys(name, what, *([args] if args.ndim else []), *shapes)
            rtol = 1e-9
            bad = ~agrees(found, wanted, rtol, 1e-11 if "log" in what or what == "entropy" else 1e-15)
            for k in np.flatnonzero(bad):
                assert settled(name, what, args.flat[k], shapes, found.flat[k], rtol, quantile), \
                    f"{name}{shapes}.{what}({args.flat[k]}): {found.flat[k]}, not {wanted.flat[k]}"


@pytest.mark.parametrize("name", NUMBERS)
def test_float32_with_location_and_scale(name: str):
    stated = {"ppf", "logppf", "logisf"} & sc.stats.DISTRIBUTIONS[name].formulas.keys()
    whats = [w for w in functions(name) if w not in OF_Q or stated]
    f = build(name, "float32", whats, "reference")
    at = place(name)
    q = np.array([0.01, 0.3, 0.5, 0.9, 0.99], "float32")
    for shapes in SHAPES[name]:
        given = np.array(shapes, "float32").astype("float64")
        if np.any((abs(given) > 100) | (abs(given) < 1e-6) & (given != 0)):
            continue  # beyond what float32 resolves
        scale = at[1] if len(at) > 1 else 1
        x = scipys(name, "ppf", q, *given) if name != "vonmises" else np.array([-3.0, -1.0, 0.2, 2.0])
        x = (x * scale + at[0]).astype("float32")
        for what, found in zip(whats, f(x, q, *given.astype("float32"), *map(np.float32, at)), strict=True):
            args = x if what in OF_X else q if what in OF_Q else None
            wanted = scipys(name, what, *([] if args is None else [args.astype("float64")]), *given, *at)
            ok = agrees(found, wanted, 1e-2 if what in MOMENTS else 2e-3, 1e-3 if "log" in what else 2e-5)
            assert (ok | np.isnan(wanted)).all(), f"{name}{shapes}.{what}({args}): {found}, not {wanted}"
    assert "f64" not in str(f)


@pytest.mark.parametrize("name", NUMBERS)
def test_parameters_without_meaning_give_nan(name: str):
    whats = functions(name)
    f = build(name, "float64", whats, "reference")
    x, q, at = points(name, SHAPES[name][0])[:5], np.array([0.1, 0.6]), place(name)
    calls = [(*s, *at) for s in illegal(name)] if SHAPES[name] != [()] else []
    good = SHAPES[name][-1]
    calls += [(*good, np.nan, *at[1:])] + ([(*good, at[0], bad) for bad in (0.0, -1.0, np.nan)] if len(at) > 1 else [])
    for args in calls:
        for what, found in zip(whats, f(x, q, *args), strict=True):
            no_place = what in ("var", "std", "entropy") and np.isnan(args[len(good)])
            assert np.isnan(found).all() or no_place, f"{name}{args}.{what}: {found}"


@pytest.mark.parametrize("name", NUMBERS)
def test_gradients_of_the_density(name: str):
    """By x and by every parameter, against differences of SciPy's; finite outside the support."""
    d, what = sc.stats.DISTRIBUTIONS[name], density(name)
    if name == "zipf":
        a = sc.scalar("a")
        with pytest.raises(sc.GradientError, match="zeta"):
            sc.compile(sc.grad(d.logpmf(3.0, a), a), [a])
        return
    at = place(name)
    names = ["x", *d.shapes, *("loc", "scale")[: len(at)]]
    leaves = [sc.input(n, "float64", ("n",) if n == "x" else ()) for n in names]
    f = sc.compile(sc.grad(sc.sum(getattr(d, what)(*leaves)), leaves), leaves, mode="reference")
    counts = {"x", "loc", "low", "high", *(s for s, rule in d.shapes.items() if rule == "count")}
    whole = counts if name in DISCRETE else ()
    for shapes in SHAPES[name]:
        middle = np.array([-1.0, 0.5]) if name == "vonmises" else scipys(name, "ppf", [0.1, 0.4, 0.8], *shapes, *at)
        low = getattr(scipy.stats, name)(*shapes, *at).support()[0]
        args = [middle, *shapes, *at]
        for n, k, g in zip(names, range(len(args)), f(*args), strict=True):
            assert not np.isnan(g).any(), (name, shapes, n, g)
            edge = n in d.shapes and (name == "triang" or args[k] in (0.0, 1.0) or not 1e-5 < abs(args[k]) < np.inf)
            if not edge and n not in whole:
                room = np.min(np.abs(middle - low)) if n in ("x", "loc") else np.inf
                wanted = slope(name, what, args, k, 1e-4 * np.minimum(np.maximum(np.abs(args[k]), 1e-2), room))
                assert agrees(g, wanted, 2e-6, 2e-6 * (1 + np.max(np.abs(wanted)))).all(), \
                    f"{name}{shapes} by {n}: {g}, not {wanted}"
        if np.isfinite(low) and name in CONTINUOUS:
            beyond = f(np.array([low - 1.0, low - 1e9]), *shapes, *at)
            assert all(np.isfinite(g).all() for g in beyond) and (beyond[0] == 0).all(), (name, shapes, beyond)


def slope(name: str, what: str, args: list, k: int, h) -> np.ndarray:
    """The derivative of SciPy's function by argument ``k``: by x for each, by a parameter of the sum."""
    at = {t: scipys(name, what, *args[:k], args[k] + t * h, *args[k + 1 :]) for t in (-2, -1, 1, 2)}
    found = (8 * (at[1] - at[-1]) - (at[2] - at[-2])) / (12 * h)
    return found if k == 0 else found.sum()


@pytest.mark.parametrize("name", NUMBERS)
def test_samples(name: str):
    """Kolmogorov and Smirnov's distance to the distribution function, the mean, and that the key decides."""
    d, shapes, at = sc.stats.DISTRIBUTIONS[name], SHAPES[name][len(SHAPES[name]) // 2], place(name)
    n = 500 if name == "vonmises" else 4000
    key = sc.random.key(7)
    x = np.asarray(d.sample(key, *shapes, *at, shape=(n,), dtype="float64"))
    assert x.shape == (n,) and x.dtype == ("float64" if name in CONTINUOUS else "int64")
    first = d(*shapes, *at).rvs(size=(5,), random_state=sc.random.key(7))
    np.testing.assert_allclose(np.asarray(first), x[:5], rtol=1e-12)
    u = np.sort(scipys(name, "cdf", x, *shapes, *at))
    if name in DISCRETE:
        low = scipys(name, "cdf", np.sort(x) - 1, *shapes, *at)
        steps = np.searchsorted(np.sort(x), np.sort(x), "right") / n
        distance = np.max(np.abs(steps - u))
        assert (low < 1).all()
    else:
        distance = max(np.max(np.arange(1, n + 1) / n - u), np.max(u - np.arange(n) / n))
    assert distance * np.sqrt(n) < 1.95, name  # which one case in 1000 exceeds
    mean, std = scipys(name, "mean", *shapes, *at), scipys(name, "std", *shapes, *at)
    if np.isfinite(std) and name != "vonmises":
        assert abs(x.mean() - mean) <= 5 * std / np.sqrt(n) + 1e-12
