"""Checks that a rule fires where it should: in the default pipeline, on what users write and on what a gradient is made
of.

What users write is derived from the left sides: every op becomes the NumPy function, operator or index that makes it.
A rule says ``written=`` where that is not how anybody would write it, and ``arises=`` where nobody writes it at all.
"""

from __future__ import annotations

import importlib
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from symc.grad.reverse import vjp
from symc.ir.function import Function, Input
from symc.ir.op import splat
from symc.ir.ops.reduce import sum_
from symc.ir.text import splat_of
from symc.ir.traverse import close_over, oldest_first, postorder, rebuild
from symc.ir.types import TensorType
from symc.ir.value import Value, fresh_input, held
from symc.opt.engine.passes import Optimized, optimize
from symc.opt.engine.pipelines import UNFUSED
from symc.opt.engine.provenance import expression
from symc.opt.engine.rule import ANY, OPT_IN, Rule
from symc.testing.rule_forms import CANNOT, free_leaves


class Unwritten(Exception):
    """An op that no function of the front end stands for."""


def as_function(*values: Value, leaves: Sequence[Value] | None = None) -> Function:
    """A function of the free leaves of some values."""
    if leaves is None:
        found = {x for v in values for x in free_leaves(v)}
        leaves = oldest_first(found)
    inputs = tuple(Input(f"x{k}", x.type, declared=x.type) for k, x in enumerate(leaves))  # type: ignore[arg-type]
    return Function("f", inputs, close_over(leaves, list(values)))


def pipeline_of(r: Rule) -> str:
    """The default pipeline as far as rules go; with the rule, if it must be asked for."""
    first = {"debug": "strip_debug,", "checking": "check_assumptions,", "edges": "guard_edges,"}.get(r.family, "")
    return first + UNFUSED + (f",+{r.name}" if OPT_IN in r.tags else "")


def fired(r: Rule, v: Value) -> Optimized:
    """The optimization of a value; AssertionError if the rule has no part in it."""
    out = optimize(as_function(v), pipeline_of(r), strict=True, verify=True)
    names = sorted({f.rule for f in out.provenance.firings})
    assert r.name in names, f"{r.name} does not fire in the default pipeline on {expression(v)}; {names} do"
    return out


def check_uses(r: Rule) -> None:
    """The rule fires in the default pipeline on its left sides, on users' forms of them, and in gradients."""
    for v in r.examples():
        fired(r, v)
    forms = user_forms(r)
    assert forms or r.arises, f"{r.name}: say what users write (written=), or where its left side comes from (arises=)"
    for v in forms:
        fired(r, v)
    check_in_gradients(r)


def user_forms(r: Rule) -> list[Value]:
    """The left sides as users write them."""
    sc: Any = importlib.import_module("symc")
    if r.written is not None:
        made = r.written(sc)
        return [x.value for x in (made if isinstance(made, list | tuple) else [made])]
    if r.arises:
        return []
    out = []
    for v in r.examples():
        try:
            form = written(v).value
        except (Unwritten, *CANNOT):
            continue
        if ANY in r.roots or any(x.op.name in r.roots for x in postorder([form]) if x.operands):
            out.append(form)  # else the front end makes something better of it at once
    return out


def check_in_gradients(r: Rule) -> None:
    """A gradient of which the left side is a factor ends as the left side itself does."""
    if r.family in ("debug", "decompose"):
        return
    for v in r.examples()[:2]:
        if not isinstance(v.type, TensorType) or v.dtype.kind != "f":
            continue
        z = fresh_input(v.type)
        axes = tuple(range(v.ndim))
        total = sum_(v * z, axes=axes) if axes else v * z
        try:
            (g,) = vjp([total], [z], [splat(1, total.type)])
        except CANNOT:
            continue
        if g is None:
            continue
        leaves = [*free_leaves(v), z]
        ends = [optimize(as_function(x, leaves=leaves), pipeline_of(r), strict=True).function for x in (v, g)]
        assert ends[0].body is ends[1].body, (
            f"{r.name}: in a gradient {expression(v)} ends as {expression(ends[1].body.results[0])}, by itself as "
            f"{expression(ends[0].body.results[0])}"
        )


# --- what users write -------------------------------------------------------------------------------------------------


def written(v: Value) -> Any:
    """A graph as a user would write it with NumPy's functions, operators and indices."""
    from symc.tensors.tensor import Tensor

    sc: Any = importlib.import_module("symc")

    done: dict[Value, Any] = {}
    for x in postorder([v]):
        if x.op.name == "input":
            done[x] = Tensor(x)
        elif (number := splat_of(x)) is not None and x.dtype == _own_dtype(number):
            done[x] = number.item() if x is not v else sc.full(x.shape, number.item(), dtype=x.dtype)
        elif x.data is not None or number is not None:
            done[x] = sc.asarray(x.data if number is None else np.broadcast_to(number, _sizes(x)))
        else:
            done[x] = _written(sc, x, [done[o] for o in x.operands])
    return done[v]


def _own_dtype(number: Any) -> Any:
    """The dtype of data that one would write as a Python number."""
    return number.dtype if number.dtype in (np.dtype("f8"), np.dtype("i8"), np.dtype("b1")) else None


def _sizes(x: Value) -> tuple:
    if not all(isinstance(s, int) for s in x.shape):
        raise Unwritten("data of unknown size")
    return x.shape


def _user_shape(shape: Sequence[Any]) -> tuple:
    from symc.tensors.sizes import user_shape

    return tuple(user_shape(tuple(shape)))


def _written(sc: Any, x: Value, operands: list[Any]) -> Any:
    """One op on what its operands were written as."""
    name, a = x.op.name, x.attrs
    infix = OPERATORS.get(x.op.facts.symbol, x.op.facts.numpy)
    if infix is not None:
        if all(isinstance(o, int | float | complex) for o in operands):
            operands = [sc.full(_user_shape(x.shape), operands[0], dtype=x.operands[0].dtype), *operands[1:]]
        return infix(*operands)
    if "elementwise" not in x.op.traits:
        operands = [
            sc.full(_user_shape(o.shape), u, dtype=o.dtype) if isinstance(u, int | float | complex) and o.ndim else u
            for o, u in zip(x.operands, operands, strict=True)
        ]
    if name in FORMS:
        return FORMS[name](sc, x, operands)
    if x.op.facts.custom is not None:
        return rebuild(x, [held(sc.asarray(o)) for o in operands]).tensor
    if name in ("logsumexp", "softmax"):
        found = getattr(sc, name, None) or getattr(getattr(sc, "special", None), name, None)
    else:
        found = getattr(sc, name, None)
    if found is None or not callable(found) or x.regions:
        raise Unwritten(name)
    if set(a) == {"axes"}:
        return found(*operands, axis=a["axes"])
    if a:
        raise Unwritten(name)
    return found(*operands)


def _index(sc: Any, x: Value, operands: list[Any]) -> Any:
    where = []
    for start, size, step in zip(x.attrs["start"], x.attrs["size"], x.attrs["step"], strict=True):
        if not all(isinstance(s, int) for s in (start, size)):
            raise Unwritten("a slice of unknown size")
        stop = start + size * step
        where.append(slice(start, stop if stop >= 0 else None, step))
    return operands[0][tuple(where)]


def _insert(sc: Any, x: Value, operands: list[Any]) -> Any:
    axes = x.attrs["axes"]
    item = tuple(slice(None) if k in axes else None for k in range(x.ndim))
    return sc.broadcast_to(operands[0][item] if axes else operands[0], _user_shape(x.shape))


def _pad(sc: Any, x: Value, operands: list[Any]) -> Any:
    a = x.attrs
    if any(a["interior"]):
        raise Unwritten("padding between elements")
    widths = list(zip(_user_shape(a["low"]), _user_shape(a["high"]), strict=True))
    return sc.pad(operands[0], widths, constant_values=operands[1])


def _gather(sc: Any, x: Value, operands: list[Any]) -> Any:
    axes = x.attrs["axes"]
    if axes == tuple(range(x.operands[0].ndim)):
        return operands[0][tuple(operands[1:])]
    if len(axes) != 1:
        raise Unwritten("an index for several axes")
    return operands[0][(*(slice(None),) * axes[0], operands[1])]


def _product(sc: Any, x: Value, operands: list[Any]) -> Any:
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    left, right = ([next(letters) for _ in range(o.ndim)] for o in x.operands)
    for ours, theirs in (*zip(*x.attrs["contract"], strict=True), *zip(*x.attrs["batch"], strict=True)):
        right[theirs] = left[ours]
    shared = [left[i] for i in x.attrs["batch"][0]]
    gone = [left[i] for i in x.attrs["contract"][0]]
    out = [*shared, *(c for c in left if c not in shared + gone), *(c for c in right if c not in shared + gone)]
    return sc.einsum(f"{''.join(left)},{''.join(right)}->{''.join(out)}", *operands)


def _promised(sc: Any, x: Value, operands: list[Any]) -> Any:
    """`sc.assume` with the names that users have for it."""
    a = x.attrs
    names = {"lower": "lower_triangular", "upper": "upper_triangular", "unit": "unit_diagonal"}
    said: dict[str, Any] = {names.get(n, n): True for n in a["structure"]}
    said |= {n: True for n in ("finite", "integer") if a[n]}
    low, high = a["low"], a["high"]
    if (low, high) in ((0, None), (None, 0)):
        sign = ("positive", "negative") if a["nonzero"] else ("nonnegative", "nonpositive")
        said[sign[0] if low == 0 else sign[1]] = True
    elif a["nonzero"]:
        said["nonzero"] = True
    if low is not None and high is not None or low or high:
        said["between"] = (-np.inf if low is None else low, np.inf if high is None else high)
    return sc.assume(operands[0], **said)


def _result(sc: Any, x: Value, operands: list[Any]) -> Any:
    return operands[0][x.attrs["index"]]


def _right_side(sc: Any, x: Value, operands: list[Any]) -> Any:
    a = x.attrs
    if x.op.name == "solve_triangular":
        return sc.linalg.solve_triangular(
            *operands, trans=a["trans"].upper(), lower=a["lower"], unit_diagonal=a["unit"]
        )
    if x.op.name == "lu_solve":
        return sc.linalg.lu_solve(tuple(operands[:2]), operands[2], trans=a["trans"].upper())
    return sc.linalg.cho_solve((operands[0], True), operands[1])


def _of_matrix(sc: Any, x: Value, operands: list[Any]) -> Any:
    return getattr(sc.linalg, x.op.name)(*operands)


OPERATORS: Mapping[str, Callable[..., Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "**": operator.pow,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
FORMS: Mapping[str, Callable[[Any, Value, list[Any]], Any]] = {
    "cast": lambda sc, x, o: o[0].astype(x.dtype),
    "slice": _index,
    "broadcast": _insert,
    "pad": _pad,
    "gather": _gather,
    "dot": _product,
    "transpose": lambda sc, x, o: sc.transpose(o[0], x.attrs["perm"]),
    "reshape": lambda sc, x, o: sc.reshape(o[0], _user_shape(x.attrs["shape"])),
    "concat": lambda sc, x, o: sc.concatenate(o, axis=x.attrs["axis"]),
    "assume": _promised,
    "get": _result,
    **dict.fromkeys(("solve_triangular", "lu_solve", "cho_solve"), _right_side),
    **dict.fromkeys(("solve", "inv", "det", "slogdet", "cholesky", "lu_factor", "eig", "eigvals", "svdvals", "expm"),
                    _of_matrix),
    **dict.fromkeys(("eigh", "eigvalsh"), lambda sc, x, o: getattr(sc.linalg, x.op.name)(
        o[0], UPLO="L" if x.attrs["lower"] else "U")),
    "svd": lambda sc, x, o: sc.linalg.svd(o[0], full_matrices=x.attrs["full"]),
    "norm": lambda sc, x, o: sc.linalg.norm(o[0], axis=x.attrs["axes"]),
    **dict.fromkeys(("sort", "argsort"), lambda sc, x, o: getattr(sc, x.op.name)(o[0], axis=x.attrs["axis"])),
    **dict.fromkeys(("cumsum", "cumprod"), lambda sc, x, o: getattr(sc, x.op.name)(o[0], axis=x.attrs["axis"])),
    **dict.fromkeys(("argmax", "argmin"), lambda sc, x, o: getattr(sc, x.op.name)(o[0], axis=x.attrs["axes"][0])),
}
