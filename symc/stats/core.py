"""Families of distributions of numbers: SciPy's arguments, support, location and scale, and functions that follow from
others. No formulas of distributions; what differs between densities and probabilities is in ``kinds``.

A record (``Continuous``, ``Discrete``) states a distribution in standard form: formulas of (x, *shapes) that are used
inside the support alone and may be any of ``logpdf cdf sf logcdf logsf ppf isf entropy mean var draw``; what is missing
follows from what is there (``DERIVED``). Parameters outside their rule become nan before a formula sees them, and a
formula sees only points of the support, so that neither value nor gradient of the other side is ever computed with.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from symc import numpy_api as xp
from symc.errors import DTypeError, InputError
from symc.ir.op import lookup
from symc.ir.record import dataclass, field
from symc.numpy_api.elementwise import float_values
from symc.numpy_api.promotion import common_dtype, rows
from symc.random.core import RULES, prepare
from symc.tensors.convert import as_operand, inexact_dtype
from symc.tensors.public import located
from symc.tensors.sizes import user_shape
from symc.tensors.tensor import Tensor

INF, NAN = math.inf, math.nan
Formula = Callable[..., Any]


def times(a: Any, b: Any) -> Tensor:
    """a * b, where 0 times inf is 0."""
    return Tensor(lookup("mulz")(*float_values([a, b], "multiply")))


def mixed(low: Any, high: Any) -> Any:
    """The logarithm of a probability, by that of the rest where it is near 1."""
    small = low < 0.5
    return xp.where(small, xp.log(xp.where(small, low, 0.5)), xp.log1p(-xp.where(small, 0.5, high)))


#: Functions of probabilities by others, the best conditioned first: what is needed, and the formula.
DERIVED: dict[str, list[tuple[tuple[str, ...], Formula]]] = {
    "cdf": [(("logcdf",), xp.exp), (("logsf",), lambda v: -xp.expm1(v)), (("sf",), lambda v: 1 - v)],
    "sf": [(("logsf",), xp.exp), (("logcdf",), lambda v: -xp.expm1(v)), (("cdf",), lambda v: 1 - v)],
    "logcdf": [(("logsf",), xp.log1mexp), (("cdf", "sf"), mixed), (("cdf",), xp.log)],
    "logsf": [(("logcdf",), xp.log1mexp), (("sf", "cdf"), mixed), (("sf",), xp.log)],
}
#: The value of each below and above the support.
OUTSIDE = {"cdf": (0.0, 1.0), "sf": (1.0, 0.0), "logcdf": (-INF, 0.0), "logsf": (0.0, -INF)}
_MIRROR = {"cdf": "sf", "sf": "cdf", "logcdf": "logsf", "logsf": "logcdf"}


@dataclass(frozen=True)
class Bound:
    """The parameters of one call, in ``dtype``: nan where they break their rules. No location or scale: 0 or 1."""

    dtype: Any
    shapes: tuple[Tensor, ...]
    loc: Tensor | None = None
    scale: Tensor | None = None

    def place(self, z: Any) -> Any:
        """loc + scale * z."""
        z = z if self.scale is None else self.scale * z
        return z if self.loc is None else self.loc + z

    def standard(self, x: Tensor) -> Tensor:
        x = x if self.loc is None else x - self.loc
        return x if self.scale is None else x / self.scale

    def known(self, out: Any) -> Tensor:
        """``out`` in the shape of all parameters; nan where one of them is."""
        out = xp.asarray(out, dtype=self.dtype)
        for p in (*self.shapes, *(p for p in (self.loc, self.scale) if p is not None)):
            out = xp.where(xp.isnan(p), p, out)
        return out


@dataclass(frozen=True)
class Distribution:
    """A family of distributions of numbers; called with parameters, one with its parameters fixed (``Frozen``).

    Parameters are given as in SciPy, by position or by name: those of ``shapes`` in order, then ``loc`` and, for
    continuous ones, ``scale``. Arguments broadcast; results have their common dtype, floats for integers. Parameters
    without meaning give nan.
    """

    name: str
    doc: str
    shapes: Mapping[str, str]  # a key of random.core.RULES each
    support: Any = None  # (low, high) or a function of the shapes; None: the whole line, formulas are right at inf
    inside: Any = None  # a point in the support, for elements that are not, or a function of the shapes
    valid: Formula | None = None  # what the shapes must fulfil together
    closed: bool = True  # the density at the lower end is what the formula gives, not 0
    symmetric: bool = False  # around 0
    formulas: Mapping[str, Formula] = field(default_factory=dict)
    whole = False  # samples are whole numbers

    # --- arguments

    def _names(self) -> tuple[str, ...]:
        return (*self.shapes, "loc", "scale")

    def _arguments(self, args: tuple, kwargs: dict[str, Any]) -> dict[str, Any]:
        """The parameters by name. Raises InputError for what does not fit the signature."""
        names = self._names()
        given = dict(zip(names, args, strict=False))
        unknown = [k for k in kwargs if k not in names]
        twice = [k for k in kwargs if k in given]
        missing = [k for k in self.shapes if k not in given and k not in kwargs]
        if len(args) > len(names) or unknown or twice or missing:
            what = (f"it has no parameter {unknown[0]!r}" if unknown else f"{twice[0]} is given twice" if twice else
                    f"{missing[0]} is missing" if missing else f"{len(args)} parameters are given")
            raise InputError(f"{self.name}: {what}", help=f"its parameters are {self.signature()}")
        return {**given, **kwargs}

    def signature(self) -> str:
        """The parameters as SciPy writes them."""
        return ", ".join({"loc": "loc=0", "scale": "scale=1"}.get(n, n) for n in self._names())

    def _bind(self, args: tuple, kwargs: dict[str, Any], *xs: Any) -> tuple[Bound, list[Tensor]]:
        given = self._arguments(args, kwargs)
        loc, scale = given.get("loc", 0), given.get("scale", 1)
        given["loc"] = None if isinstance(loc, int | float) and loc == 0 else loc
        given["scale"] = None if isinstance(scale, int | float) and scale == 1 else scale
        names = [n for n in self._names() if given.get(n) is not None]
        tensors = [as_operand(i) for i in (*xs, *(given[n] for n in names))]
        dtype = inexact_dtype(common_dtype([*tensors, as_operand(1.0)]))
        if dtype.kind == "c":
            raise DTypeError(f"{self.name} is not defined for complex numbers", values=rows(tensors))
        cast = [xp.asarray(t, dtype=dtype) for t in tensors]
        own = {n: _legal(t, self._rule(n)) for n, t in zip(names, cast[len(xs):], strict=True)}
        shapes = tuple(own[n] for n in self.shapes)
        if self.valid is not None:
            ok = self.valid(*shapes)
            shapes = tuple(xp.where(ok, p, NAN) for p in shapes)
        return Bound(dtype, shapes, own.get("loc"), own.get("scale")), cast[: len(xs)]

    def _rule(self, name: str) -> str:
        return self.shapes.get(name, {"loc": "any", "scale": "positive"}.get(name, "any"))

    # --- formulas

    def _has(self, name: str) -> bool:
        return name in self.formulas or self.symmetric and _MIRROR.get(name) in self.formulas

    def _formula(self, name: str) -> Formula:
        """The function ``name`` inside the support: as it is stated, mirrored, or made from others."""
        if name in self.formulas:
            return self.formulas[name]
        if self.symmetric and _MIRROR.get(name) in self.formulas:
            mirrored = self.formulas[_MIRROR[name]]
            return lambda x, *p: mirrored(-x, *p)
        for needed, make in DERIVED.get(name, ()):
            if all(self._has(n) for n in needed):
                found = [self._formula(n) for n in needed]
                return lambda x, *p: make(*(f(x, *p) for f in found))
        return self._missing(name)

    def _missing(self, name: str) -> Formula:
        raise InputError(f"{self.name} has no {name}: it has no closed form",
                         help=f"it has {', '.join(sorted(self.functions()))}")

    def functions(self) -> set[str]:
        """The names of the functions that the distribution has."""
        both = {n for n in DERIVED if self._has(n) or any(all(map(self._has, need)) for need, _ in DERIVED[n])}
        moments = {n for n in ("entropy", "mean", "var") if n in self.formulas}
        return {*both, *moments, *self._own_functions(bool(both)), *(("std",) if "var" in moments else ())}

    def _own_functions(self, cumulative: bool) -> set[str]:
        raise NotImplementedError

    def _ends(self, p: tuple) -> tuple[Any, Any]:
        return (-INF, INF) if self.support is None else self.support(*p) if callable(self.support) else self.support

    def _fill(self, p: tuple) -> Any:
        if self.inside is not None:
            return self.inside(*p) if callable(self.inside) else self.inside
        a, b = self._ends(p)
        known = [not isinstance(e, float) or math.isfinite(e) for e in (a, b)]
        return (a + b) / 2 if all(known) else a + 1 if known[0] else b - 1 if known[1] else 0.0

    def _cumulative(self, name: str, x: Any, args: tuple, kwargs: dict[str, Any]) -> Tensor:
        bound, (x,) = self._bind(args, kwargs, x)
        return xp.asarray(self._within(name, self._point(bound, x), bound))

    def _point(self, bound: Bound, x: Tensor) -> Tensor:
        return bound.standard(x)

    def _within(self, name: str, z: Tensor, bound: Bound) -> Any:
        """A function of probabilities on all numbers."""
        f, p = self._formula(name), bound.shapes
        if self.support is None:
            return f(z, *p)
        below, above = self._sides(z, p)
        first, last = OUTSIDE[name]
        out = xp.where(below, first, xp.where(above, last, f(xp.where(below | above, self._fill(p), z), *p)))
        return Bound(bound.dtype, p, None, bound.scale).known(out)

    def _sides(self, z: Tensor, p: tuple) -> tuple[Tensor, Tensor]:
        a, b = self._ends(p)
        return z <= a, z >= b

    # --- public functions

    @located
    def cdf(self, x: Any, *args: Any, **kwargs: Any) -> Tensor:
        """The probability of numbers up to ``x``."""
        return self._cumulative("cdf", x, args, kwargs)

    @located
    def sf(self, x: Any, *args: Any, **kwargs: Any) -> Tensor:
        """The probability of numbers above ``x``: 1 - cdf, accurate where that is small."""
        return self._cumulative("sf", x, args, kwargs)

    @located
    def logcdf(self, x: Any, *args: Any, **kwargs: Any) -> Tensor:
        """The logarithm of ``cdf``."""
        return self._cumulative("logcdf", x, args, kwargs)

    @located
    def logsf(self, x: Any, *args: Any, **kwargs: Any) -> Tensor:
        """The logarithm of ``sf``."""
        return self._cumulative("logsf", x, args, kwargs)

    @located
    def ppf(self, q: Any, *args: Any, **kwargs: Any) -> Tensor:
        """The number up to which the probability is ``q``, the inverse of ``cdf``; nan for q outside [0, 1]."""
        return self._quantile(True, q, args, kwargs)

    @located
    def isf(self, q: Any, *args: Any, **kwargs: Any) -> Tensor:
        """The number above which the probability is ``q``, the inverse of ``sf``."""
        return self._quantile(False, q, args, kwargs)

    @located
    def median(self, *args: Any, **kwargs: Any) -> Tensor:
        """The number below and above which half of the probability lies."""
        return self._quantile(True, 0.5, args, kwargs)

    @located
    def interval(self, confidence: Any, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """The ends of an interval with equal probability on both sides and ``confidence`` in it."""
        rest = (1 - xp.asarray(confidence)) / 2
        return self._quantile(True, rest, args, kwargs), self._quantile(False, rest, args, kwargs)

    def _quantile(self, lower: bool, q: Any, args: tuple, kwargs: dict[str, Any]) -> Tensor:
        bound, (q,) = self._bind(args, kwargs, q)
        p = bound.shapes
        a, b = self._quantile_ends(p)
        none, all_ = (q == 0, q == 1) if lower else (q == 1, q == 0)
        inner = (q > 0) & (q < 1)
        z = self._inverse(lower)(xp.where(inner, q, 0.5), *p)
        out = xp.where(none, a, xp.where(all_, b, xp.where(inner, z, NAN)))
        return bound.place(bound.known(out) if p else out)

    def _quantile_ends(self, p: tuple) -> tuple[Any, Any]:
        return self._ends(p)

    def _inverse(self, lower: bool) -> Formula:
        raise NotImplementedError

    def _moment(self, name: str, args: tuple, kwargs: dict[str, Any]) -> tuple[Tensor, Bound]:
        if name not in self.formulas:
            self._missing(name)
        bound, _ = self._bind(args, kwargs)
        return bound.known(xp.asarray(self.formulas[name](*bound.shapes))), bound

    @located
    def entropy(self, *args: Any, **kwargs: Any) -> Tensor:
        """The entropy, in nats: differential for continuous distributions."""
        out, bound = self._moment("entropy", args, kwargs)
        return out if bound.scale is None else out + xp.log(bound.scale)

    @located
    def mean(self, *args: Any, **kwargs: Any) -> Tensor:
        """The mean; inf or nan where there is none."""
        out, bound = self._moment("mean", args, kwargs)
        return bound.place(out)

    @located
    def var(self, *args: Any, **kwargs: Any) -> Tensor:
        """The variance; inf or nan where there is none."""
        out, bound = self._moment("var", args, kwargs)
        return out if bound.scale is None else out * bound.scale**2

    @located
    def std(self, *args: Any, **kwargs: Any) -> Tensor:
        """The standard deviation."""
        return xp.sqrt(self.var(*args, **kwargs))

    @located
    def sample(self, key: Any, *args: Any, shape: Any = None, dtype: Any = None, **kwargs: Any) -> Tensor:
        """Random numbers by a key (``sc.random.key``), of a shape that the parameters broadcast into.

        Differentiable in the parameters of continuous distributions. Constants that break a rule raise InputError.
        """
        given = self._arguments(args, kwargs)
        draw = prepare(self.name, key, shape, dtype,
                       **{n: (item, self._rule(n)) for n, item in given.items()})  # type: ignore[arg-type]
        values = dict(zip(given, map(Tensor, draw.parameters), strict=True))
        bound = Bound(draw.dtype, tuple(values[n] for n in self.shapes), values.get("loc"), values.get("scale"))
        out = bound.place(self._draw(key, user_shape(draw.shape), draw.dtype, bound.shapes))
        return xp.asarray(out, dtype="int64") if self.whole else out

    def _draw(self, key: Any, shape: tuple, dtype: Any, p: tuple) -> Tensor:
        return self.formulas["draw"](key, shape, dtype, *p)

    @located
    def rvs(self, *args: Any, size: Any = None, random_state: Any = None, **kwargs: Any) -> Tensor:
        """``sample`` with SciPy's arguments: ``random_state`` is a key."""
        return self.sample(random_state, *args, shape=size, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Frozen:
        """The distribution with its parameters fixed: ``norm(loc, scale).logpdf(x)``."""
        self._arguments(args, kwargs)
        return Frozen(self, args, kwargs)

    def __repr__(self) -> str:
        return f"sc.stats.{self.name}"


def _legal(p: Tensor, rule: str) -> Tensor:
    return p if rule == "any" else xp.where(RULES[rule][0](p), p, NAN)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Frozen:
    """A distribution with its parameters fixed: its functions without them."""

    family: Any
    args: tuple
    kwargs: dict[str, Any]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not callable(method := getattr(self.family, name, None)):
            raise AttributeError(f"{self.family!r} has no {name!r}")

        def call(*own: Any, **kwargs: Any) -> Any:
            first = own if name in ("mean", "var", "std", "entropy", "median") else own[:1]
            if len(own) > 1 and name not in ("sample", "rvs"):
                raise InputError(f"{self.family.name}.{name}: its parameters are fixed")
            return method(*first, *self.args, **self.kwargs, **kwargs)

        return call
