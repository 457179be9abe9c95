"""Transfer functions of structure: of matrices (the last two axes), and of index arrays (the last axis).

* ``symmetric``: equal to its transpose; ``hermitian``: to the conjugate of it (for real numbers the same thing).
* ``psd``, ``pd``: hermitian, and x^H A x is nowhere negative (for pd: positive where x is not 0).
* ``lower``, ``upper``, ``diagonal``: zero elsewhere; ``unit``: ones on the diagonal; ``identity``.
* ``orthogonal``: square, and its conjugate transpose is its inverse; ``permutation``: of rows.
* ``unique``: no number twice along the last axis; ``sorted``: none below the one before.

Where zeros or symmetry are said of a product, the matrices are taken to be finite: beside an infinity there is nan
instead. psd and orthogonal are meant up to rounding; a Gram matrix x @ x.T is psd, but not pd: x may lose rank.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symc.ir.ops.matrix import swapped_of
from symc.ir.text import splat_of
from symc.ir.types import TensorType
from symc.ir.value import Value
from symc.opt.facts.fact import NONE, Fact
from symc.opt.facts.forms import band_of, diagonal_of, is_eye
from symc.opt.facts.transfer.movements import counts_exactly

#: Constants up to this many elements are looked into.
MOST = 4096
ZEROS = frozenset({"lower", "upper", "diagonal"})
MATRIX = ZEROS | {"symmetric", "hermitian", "psd", "pd", "unit", "orthogonal", "permutation", "identity"}
ROW = frozenset({"unique", "sorted"})
_IMPLIED = {
    "identity": {"diagonal", "permutation", "pd", "unit"},
    "permutation": {"orthogonal"},
    "pd": {"psd"},
    "psd": {"hermitian"},
    "diagonal": {"lower", "upper", "symmetric"},
}
Structure = Callable[[Value, list[Any]], "frozenset[str] | tuple[frozenset[str], ...]"]
_TABLE: dict[str, Structure] = {}


def structure(*names: str) -> Callable[[Structure], Structure]:
    """Declare the structure of what ops give: ``f(v, facts of its operands)``; of a tuple, of every result."""

    def declare(f: Structure) -> Structure:
        _TABLE.update(dict.fromkeys(names, f))
        return f

    return declare


def structure_of(v: Value, given: list[Any]) -> Any:
    """The structure of a value, given the facts of its operands."""
    f = _TABLE.get(v.op.name)
    if f is not None:
        return f(v, given)
    if v.op.facts.same:
        return given[0].props
    if "elementwise" in v.op.traits and given:
        return _elementwise(v, given)
    return NONE


def closure(props: frozenset[str], t: TensorType) -> frozenset[str]:
    """``props`` with what they imply for a value of this type."""
    out = set(props)
    if len(t.shape) < 2:
        out -= MATRIX
    elif not out.isdisjoint(MATRIX):
        if t.shape[-1] != t.shape[-2]:
            out &= {"lower", "upper", *ROW}
            return frozenset(out)
        mirrored = out & {"symmetric", "hermitian", "psd", "pd"}
        if {"lower", "upper"} <= out or (mirrored and out & {"lower", "upper"}):
            out.add("diagonal")
        if {"diagonal", "unit"} <= out:
            out.add("identity")
        for name, more in _IMPLIED.items():
            if name in out:
                out |= more
        if t.dtype.kind != "c" and out & {"symmetric", "hermitian"}:
            out |= {"symmetric", "hermitian"}
    return frozenset(out)


def transposed(props: frozenset[str]) -> frozenset[str]:
    """The structure of the transposes of matrices."""
    swap = {"lower": "upper", "upper": "lower"}
    return frozenset(swap.get(p, p) for p in props & MATRIX)


# --- leaves and movements ---------------------------------------------------------------------------------------------


@structure("constant")
def _constant(v: Value, _: list[Fact]) -> frozenset[str]:
    data = v.attrs["value"].data
    if not 0 < data.size <= MOST or not data.ndim:
        return NONE
    out = set()
    if data.dtype.kind in "iu":
        if bool((data[..., 1:] >= data[..., :-1]).all()):
            out.add("sorted")
        line = np.sort(data, axis=-1)
        if bool((line[..., 1:] != line[..., :-1]).all()):
            out.add("unique")
    if data.ndim >= 2:
        out |= _of_matrix(data)
    return frozenset(out)


def _of_matrix(a: np.ndarray) -> set[str]:
    out = set()
    if not np.tril(a, -1).any():
        out.add("upper")
    if not np.triu(a, 1).any():
        out.add("lower")
    if a.shape[-1] == a.shape[-2]:
        if np.array_equal(a, np.swapaxes(a, -1, -2)):
            out.add("symmetric")
        if np.array_equal(a, np.conj(np.swapaxes(a, -1, -2))):
            out.add("hermitian")
        if (np.diagonal(a, axis1=-2, axis2=-1) == 1).all():
            out.add("unit")
        binary = ((a == 0) | (a == 1)).all()
        if binary and (a.sum(-1) == 1).all() and (a.sum(-2) == 1).all():
            out.add("permutation")
    return out


@structure("iota")
def _iota(v: Value, _: list[Fact]) -> frozenset[str]:
    return ROW if v.attrs["axis"] == v.ndim - 1 and counts_exactly(v) else NONE


@structure("argsort")
def _argsort(v: Value, _: list[Fact]) -> frozenset[str]:
    return frozenset({"unique"}) if v.attrs["axis"] == v.ndim - 1 else NONE


@structure("sort")
def _sort(v: Value, given: list[Fact]) -> frozenset[str]:
    last = v.attrs["axis"] == v.ndim - 1 and not given[0].nan
    return frozenset({"sorted"}) | (given[0].props & {"unique"}) if last else NONE


@structure("transpose")
def _transpose(v: Value, given: list[Fact]) -> frozenset[str]:
    perm, n = v.attrs["perm"], v.ndim
    out = given[0].props & ROW if n and perm[-1] == n - 1 else NONE
    if perm[-2:] == (n - 2, n - 1):
        return out | (given[0].props & MATRIX)
    return out | transposed(given[0].props) if perm[-2:] == (n - 1, n - 2) else out


@structure("broadcast")
def _broadcast(v: Value, given: list[Fact]) -> frozenset[str]:
    axes, n = v.attrs["axes"], v.ndim
    out = given[0].props & ROW if axes[-1:] == (n - 1,) else NONE
    if axes[-2:] == (n - 2, n - 1):
        out |= given[0].props & MATRIX
    return out


@structure("reshape", "ensure_shape")
def _reshape(v: Value, given: list[Fact]) -> frozenset[str]:
    (x,) = v.operands
    out = given[0].props & ROW if x.ndim and x.shape[-1:] == v.shape[-1:] else NONE
    if x.ndim >= 2 and x.shape[-2:] == v.shape[-2:]:
        out |= given[0].props & MATRIX
    return out


@structure("slice")
def _slice(v: Value, given: list[Fact]) -> frozenset[str]:
    start, size, step = v.attrs["start"], v.attrs["size"], v.attrs["step"]
    out: frozenset[str] = NONE
    if v.ndim and step[-1] > 0:
        out |= given[0].props & ROW
    if v.ndim >= 2 and start[-1] == start[-2] and size[-1] == size[-2] and step[-1] == step[-2]:
        square = v.operands[0].shape[-1] == v.operands[0].shape[-2]
        kept = {"symmetric", "hermitian", "psd", "pd"} if square else set()
        if step[-1] > 0:
            kept |= ZEROS | {"unit"}
        out |= given[0].props & kept
        if v.shape[-2:] == v.operands[0].shape[-2:] and step[-1] == 1:
            out |= given[0].props & MATRIX
    return out


@structure("gather", "dynamic_slice")
def _picked(v: Value, given: list[Fact]) -> frozenset[str]:
    x = v.operands[0]
    if v.op.name == "dynamic_slice":
        return given[0].props & MATRIX if x.ndim >= 2 and v.shape[-2:] == x.shape[-2:] else NONE
    whole = x.ndim >= 2 and not any(a >= x.ndim - 2 for a in v.attrs["axes"])
    return given[0].props if whole else given[0].props & ROW if x.ndim - 1 not in v.attrs["axes"] else NONE


@structure("concat")
def _concat(v: Value, given: list[Fact]) -> frozenset[str]:
    if v.attrs["axis"] >= v.ndim - 2:
        return NONE
    return frozenset.intersection(*[f.props for f in given])


@structure("assume", "check_assumption")
def _assume(v: Value, given: list[Fact]) -> frozenset[str]:
    return given[0].props | frozenset(v.attrs["structure"])


@structure("cast")
def _cast(v: Value, given: list[Fact]) -> frozenset[str]:
    source, target = v.operands[0].dtype, v.dtype
    out = given[0].props
    if source.kind == "c" and target.kind != "c":
        return out & (ZEROS | {"unit", "identity", "permutation", "symmetric"})
    if target.kind in "iub" and source.kind in "fc":
        return out & (ZEROS | {"symmetric"})
    exact = np.can_cast(source, target, "safe") and not (source.kind in "iu" and target.kind == "f")
    return out if exact or source.kind == "b" else out - {"unique"}


# --- elementwise ------------------------------------------------------------------------------------------------------

def _mirrored(x: Value, f: Fact) -> bool:
    """True if an operand is surely its own transpose."""
    return "symmetric" in f.props or splat_of(x) is not None or _is_scalar(x)


def _is_scalar(x: Value) -> bool:
    """True if every matrix of ``x`` repeats one number."""
    return x.op.name == "broadcast" and all(a < x.ndim - 2 for a in x.attrs["axes"])


def _are_transposes(x: Value, y: Value) -> bool:
    """True if two operands are surely each other's transpose."""
    n = x.ndim
    if swapped_of(x) is y or swapped_of(y) is x:
        return True
    if x.op.name == y.op.name == "broadcast" and x.operands[0] is y.operands[0]:
        p, q = x.attrs["axes"], y.attrs["axes"]
        return p[:-1] == q[:-1] and {*p[-1:], *q[-1:]} == {n - 1, n - 2}
    return False


def _elementwise(v: Value, given: list[Fact]) -> frozenset[str]:
    if not v.ndim:
        return NONE
    if v.op.name == "where" and given[0].low == given[0].high:
        return given[1 if given[0].low else 2].props
    out = _row(v, given)
    if v.ndim < 2 or v.shape[-1] != v.shape[-2]:
        return out | (_zeros(v, given) if v.ndim >= 2 else NONE)
    if all(_mirrored(x, f) for x, f in zip(v.operands, given, strict=True)) or (
        "commutative" in v.op.traits and len(given) == 2 and _are_transposes(*v.operands)
    ):
        out |= {"symmetric"}
    return out | _zeros(v, given) | _definite(v, given)


def _zeros(v: Value, given: list[Fact]) -> frozenset[str]:
    """Triangles of zeros, and ones on the diagonal."""
    name, props = v.op.name, [f.props for f in given]
    if v.op.facts.keeps_zero:
        kept = ZEROS | ({"unit"} if v.op.facts.keeps_one else set())
        kept |= {"identity"} if v.op.facts.keeps_one and "identity" in props[0] else set()
        return frozenset.intersection(*props) & kept
    if name in ("mul", "mulz"):
        return (props[0] | props[1]) & ZEROS | (props[0] & props[1] & {"unit"})
    if name == "div":
        return props[0] & ZEROS if given[1].nonzero or splat_of(v.operands[1]) is not None else NONE
    if v.op.facts.mirror:
        return _of_mask(v)
    if name == "and":
        return (props[0] | props[1]) & ZEROS
    if name == "where":
        answers = props[1] & props[2] & ZEROS
        zeros = splat_of(v.operands[2])
        if is_eye(v):
            return answers | {"identity"}
        return answers | (props[0] & ZEROS) if zeros is not None and zeros == 0 else answers
    return NONE


def _of_mask(v: Value) -> frozenset[str]:
    b = band_of(v)
    if b is None or (b.row, b.column) != (v.ndim - 2, v.ndim - 1) or not isinstance(b.offset, int):
        return NONE
    if b.relation == "eq" and b.offset == 0:
        return frozenset({"identity", "diagonal"})
    if b.relation in ("le", "lt", "eq") and b.offset + (b.relation != "lt") <= 1:
        return frozenset({"lower"})
    if b.relation in ("ge", "gt", "eq") and b.offset - (b.relation != "gt") >= -1:
        return frozenset({"upper"})
    return NONE


def _definite(v: Value, given: list[Fact]) -> frozenset[str]:
    """psd and pd of sums and multiples, and of diagonal matrices."""
    name, props = v.op.name, [f.props for f in given]
    if name == "add" and "psd" in props[0] and "psd" in props[1]:
        return frozenset({"pd" if "pd" in props[0] or "pd" in props[1] else "psd"})
    if name in ("mul", "div", "where"):
        line = diagonal_of(v)
        if line is not None:  # the facts of the repeated line are those of the line
            k = 1 if name == "where" else next(i for i, o in enumerate(v.operands) if not is_eye(o))
            found = _of_diagonal(given[k])
            if found:
                return found
    if name in ("mul", "div"):
        for k in (0, 1) if name == "mul" else (0,):
            x, c = given[k], given[1 - k]
            once = splat_of(v.operands[1 - k]) is not None or _is_scalar(v.operands[1 - k])
            if once and "psd" in x.props and (c.positive or (name == "mul" and c.nonnegative)):
                return frozenset({"pd" if "pd" in x.props and c.positive else "psd"})
        if name == "mul" and "psd" in props[0] and "psd" in props[1]:  # Schur's product
            return frozenset({"pd" if "pd" in props[0] and "pd" in props[1] else "psd"})
        if name == "mul" and v.dtype.kind == "f" and _are_transposes(*v.operands) and (
            v.operands[0].op.name == "broadcast"):
            return frozenset({"psd"})  # of a vector with itself
    return NONE


def _of_diagonal(line: Fact) -> frozenset[str]:
    return frozenset({"pd"} if line.positive else {"psd"} if line.nonnegative else ())


def _row(v: Value, given: list[Fact]) -> frozenset[str]:
    """Order and uniqueness of integers, which survive a shift (no index comes near the ends of i64)."""
    name = v.op.name
    if v.dtype.kind not in "iu" or name not in ("add", "sub", "mul", "neg"):
        return NONE
    if name == "neg":
        return given[0].props & {"unique"} if v.dtype.kind == "i" else NONE
    for k in (0, 1):
        number = splat_of(v.operands[1 - k])
        once = number is not None or v.operands[1 - k].op.name == "broadcast" and (
            v.ndim - 1 not in v.operands[1 - k].attrs["axes"])
        if not once:
            continue
        if name == "add" or (name == "sub" and k == 0):
            return given[k].props & ROW
        if name == "sub":
            return given[k].props & {"unique"}
        if number is not None and 0 < abs(int(number)) < 2**20:
            return given[k].props & (ROW if number > 0 else {"unique"})
    return NONE


@structure("cumsum")
def _cumsum(v: Value, given: list[Fact]) -> frozenset[str]:
    if v.dtype.kind not in "iu" or v.attrs["axis"] != v.ndim - 1 or v.attrs["reverse"]:
        return NONE
    return ROW if given[0].positive else frozenset({"sorted"}) if given[0].nonnegative else NONE
