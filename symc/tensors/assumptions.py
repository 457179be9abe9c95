"""``sc.assume``: promises about a value that rules may rely on."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from symc.errors import DTypeError, InputError, ShapeError, did_you_mean
from symc.ir.dim import known_equal
from symc.ir.ops.assume import ELEMENTS, NOTHING, OF_ANY_MATRIX, OF_ROWS
from symc.ir.ops.assume import assume as assume_op
from symc.opt.facts.analysis import Analysis
from symc.opt.facts.derive import settle
from symc.opt.facts.fact import Fact, above, both
from symc.tensors.convert import as_tensor
from symc.tensors.public import located
from symc.tensors.tensor import Tensor

#: Promises about structure, by what users call it.
_STRUCTURES = {
    "symmetric": "symmetric",
    "hermitian": "hermitian",
    "psd": "psd",
    "positive_semidefinite": "psd",
    "pd": "pd",
    "positive_definite": "pd",
    "lower_triangular": "lower",
    "upper_triangular": "upper",
    "diagonal": "diagonal",
    "unit_diagonal": "unit",
    "orthogonal": "orthogonal",
    "unitary": "orthogonal",
    "permutation": "permutation",
    "unique": "unique",
    "sorted": "sorted",
}
_OPPOSITES = (("positive", "negative"), ("positive", "nonpositive"), ("nonnegative", "negative"))
_OTHER_NAMES = {"lower": "lower_triangular", "upper": "upper_triangular", "tril": "lower_triangular",
                "triu": "upper_triangular", "range": "between", "bounds": "between", "spd": "pd", "real": "finite",
                "whole": "integer", "nan": "finite", "non_negative": "nonnegative", "orthonormal": "orthogonal",
                "distinct": "unique", "increasing": "sorted"}  # fmt: skip


@located
def assume(x: Any, **promises: Any) -> Tensor:
    """``x``, about which something is promised that rules may rely on: ``sc.assume(x, positive=True)``.

    Of every element: ``positive``, ``nonnegative``, ``negative``, ``nonpositive``, ``nonzero``, ``finite``,
    ``integer``, ``between=(low, high)`` (both ends belong to it). All but ``nonzero`` promise that nothing is nan.
    Of the matrices in the last two axes: ``symmetric``, ``hermitian``, ``psd`` (positive semidefinite), ``pd``
    (positive definite), ``lower_triangular``, ``upper_triangular``, ``diagonal``, ``unit_diagonal``, ``orthogonal``,
    ``permutation``. Of what lies along the last axis: ``unique``, ``sorted``.

    Use the result in place of x. A promise that does not hold makes results wrong; ``mode="debug"`` and
    ``mode="nan_guard"`` check every one when the program runs. Raises InputError for a promise that is not known or
    cannot hold.

    >>> x = sc.vector("x")
    >>> print(sc.compile(sc.sqrt(sc.assume(x, nonnegative=True) ** 2)), end="")
    func @f(%x: f64[_0]) -> (f64[_0]) {
      return %x
    }
    """
    t = as_tensor(x)
    for name, given in promises.items():
        _check_name(name, given)
    attrs = dict(NOTHING)
    for name in promises:
        for key, said in ELEMENTS.get(name, {}).items():
            attrs[key] = said
    _check_opposites(promises, t)
    attrs["structure"] = tuple(sorted({_STRUCTURES[n] for n in promises if n in _STRUCTURES}))
    if "between" in promises:
        _between(promises["between"], attrs, t)
    _check_meaning(attrs, promises, t)
    return Tensor(assume_op(t.value, **attrs), t.weak) if promises else t


def _check_name(name: str, given: Any) -> None:
    if name not in ELEMENTS and name not in _STRUCTURES and name != "between":
        known = [*ELEMENTS, "between", *_STRUCTURES]
        hint = f"it is called {_OTHER_NAMES[name]}" if name in _OTHER_NAMES else did_you_mean(name, known)
        raise InputError(f"assume: nothing is known of {name!r}", help=hint or "known are: " + ", ".join(known))
    if name != "between" and not (isinstance(given, bool | np.bool_) and given):
        raise InputError(
            f"assume: {name}={given!r} promises nothing",
            help=f"leave it out, or promise {name}=True" + (
                "; the opposite of positive is nonpositive" if name == "positive" else ""),
        )


def _check_opposites(promises: dict[str, Any], t: Tensor) -> None:
    for first, second in _OPPOSITES:
        if first in promises and second in promises:
            raise InputError(f"assume: nothing is both {first} and {second}", values=[t.describe("x")])
    if {"pd", "psd", "positive_definite"} & promises.keys() and "negative" in promises:
        raise InputError("assume: the diagonal of a positive semidefinite matrix is not negative",
                         values=[t.describe("x")])


def _between(given: Any, attrs: dict[str, Any], t: Tensor) -> None:
    """The range ``given``, with what signs say of it already."""
    try:
        low, high = (float(e) if not isinstance(e, int | np.integer) else int(e) for e in given)
    except (TypeError, ValueError):
        raise InputError(f"assume: between is a pair of numbers, not {given!r}",
                         help="between=(low, high); -np.inf and np.inf are ends, too") from None  # fmt: skip
    if not low <= high:
        raise InputError(f"assume: no number is between {low} and {high}",
                         help="the lower end comes first" if high < low else "nan is no end of a range")
    for key, end in (("low", low), ("high", high)):
        if not math.isinf(end):
            known = attrs[key]
            attrs[key] = end if known is None else max(end, known) if key == "low" else min(end, known)
    if attrs["low"] is not None and attrs["high"] is not None and attrs["low"] > attrs["high"]:
        raise InputError(f"assume: between={given!r} contradicts the sign that is promised", values=[t.describe("x")])
    if math.isinf(low) and math.isinf(high):
        attrs["low"] = -math.inf if attrs["low"] is None else attrs["low"]


def _check_meaning(attrs: dict[str, Any], promises: dict[str, Any], t: Tensor) -> None:
    """Checks that the promises have a meaning for the type of ``t``, and do not contradict what is known of it."""
    kind, shape = t.dtype.kind, t.value.shape
    row = [t.describe("x")]
    ranged = attrs["low"] is not None or attrs["high"] is not None or attrs["integer"]
    if ranged and kind in "bc":
        name = next(n for n in promises if n == "between" or n in ELEMENTS and n not in ("nonzero", "finite"))
        raise DTypeError(f"assume: {name} has no meaning for {t.dtype}", values=row)
    for name in promises:
        structure = _STRUCTURES.get(name)
        if structure is None:
            continue
        if structure in OF_ROWS:
            if not shape:
                raise ShapeError(f"assume: {name} is about the elements along an axis, and there is none", values=row)
        elif len(shape) < 2:
            raise ShapeError(f"assume: {name} is about matrices: two axes are needed", values=row)
        elif structure not in OF_ANY_MATRIX and known_equal(shape[-1], shape[-2]) is False:
            raise ShapeError(f"assume: {name} is about square matrices", values=row)
    known = Analysis()(t.value)
    promised = Fact(attrs["low"], attrs["high"], True, True, not attrs["nonzero"])
    together = settle(t.value.type, both(known, promised))
    if above(together.low, together.high) or (together.nonzero and together.low == together.high == 0):
        raise InputError(
            f"assume: {_promise(promises)} cannot hold: every element is {_range(known)}", values=row,
            help="what x is made of says so",
        )


def _promise(promises: dict[str, Any]) -> str:
    return ", ".join(n if n != "between" else f"between={v}" for n, v in promises.items())


def _range(f: Fact) -> str:
    if f.low is not None and f.high is not None:
        return f"between {f.low} and {f.high}"
    return f"at least {f.low}" if f.low is not None else f"at most {f.high}"


