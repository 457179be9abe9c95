"""``sc.op``: an operation of the user's own, as a record like any other, made from a NumPy function.

The NumPy function is the meaning. What is not given is not there: without a derivative the op has none, and without an
``expression`` or a ``numba`` function it is run by its NumPy function instead of being compiled into kernels.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symc.callsite import caller
from symc.codegen.user_functions import add as add_function
from symc.errors import DTypeError, GradientError, InputError, ShapeError
from symc.grad import vjp as vjp_values
from symc.ir.dim import Dim
from symc.ir.op import (
    Custom,
    Decompose,
    Derivative,
    Element,
    Elementwise,
    Op,
    all_ops,
    register,
    splat,
    unregister,
)
from symc.ir.ops.elementwise import check_kind
from symc.ir.traverse import replace
from symc.ir.types import TensorType, is_inexact
from symc.ir.value import Value, fresh_input
from symc.numpy_api.convert import as_tensor, convert
from symc.numpy_api.promotion import stretch, together
from symc.public import located
from symc.sizes import as_size, user_shape
from symc.tensor import Tensor


def op(fn: Callable[..., Any] | None = None, *, name: str | None = None, infer: Callable[..., Any] | None = None,
       derivative: Any = None, vjp: Callable[..., Any] | None = None, jvp: Callable[..., Any] | None = None,
       expression: Callable[..., Any] | None = None, numba: Callable[..., Any] | None = None) -> Any:  # fmt: skip
    """Make an op of a NumPy function: ``@sc.op`` or ``@sc.op(derivative=...)``.

    * Without ``infer`` the op is elementwise: operands are promoted and broadcast, the result has their shape, and the
      dtype that the function gives for such operands. ``infer(*operands)`` takes tensors and returns ``(dtype, shape)``
      of the result for any other kind of op.
    * ``derivative``: of an elementwise op, d result / d operand as a function of the operands; one function an operand.
    * ``vjp(g, *operands)`` returns the cotangent of every operand (None for zero), ``jvp(tangents, *operands)`` the
      tangent of the result; a tangent is None where it is zero. The one that is not given is the other, transposed.
    * ``expression(*operands)``: the same values from other functions of symc; kernels are made of it.
    * ``numba(*numbers)``: the same for one element of an elementwise op on floats, a function that ``numba.njit``
      compiles and that raises nothing; kernels call it.

    Returns the function on symbolic values. Raises InputError for a name that an op of symc has, and for arguments that
    do not fit together.
    """
    if fn is None:
        return lambda f: op(f, name=name, infer=infer, derivative=derivative, vjp=vjp, jvp=jvp, expression=expression,
                            numba=numba)  # fmt: skip
    label = name or fn.__name__
    scalar = getattr(numba, "py_func", numba)
    _check(label, infer, derivative, vjp or jvp, expression, scalar)
    _check_counts(label, fn, derivative, scalar)
    own = _Own(fn, label, infer, "f" if scalar else "")
    lowering: Any = None
    if expression is not None:
        lowering = Decompose(lambda v: _like(expression(*_tensors(v.operands)), v))
    elif scalar is not None:
        add_function(label, scalar, len(inspect.signature(scalar).parameters))
        lowering = Element()
    traits = frozenset() if infer else frozenset({"elementwise"})
    rule = _derivative(label, derivative, vjp, jvp)
    record = Op(label, own.infer, own.run, rule, lowering, traits, doc=fn.__doc__ or "", facts={"custom": True})
    if label in {o.name for o in all_ops()}:  # defined again, as in a notebook
        unregister(label)
    register(record)

    def call(*operands: Any) -> Tensor:
        if infer is None:
            return Tensor(record(*together(operands, label)))
        return Tensor(record(*[as_tensor(o).value for o in operands]))

    call.__name__, call.__qualname__, call.__doc__ = label, label, fn.__doc__
    return located(call)


def _check(label: str, infer: Any, derivative: Any, other: Any, expression: Any, scalar: Any) -> None:
    """Raise InputError, with the user's line, for what cannot be an op."""

    def wrong(what: str, help: str | None = None) -> InputError:
        return InputError(what, where=[caller()], help=help)

    if not label.isidentifier():
        raise wrong(f"an op cannot be called {label!r}", "give a name: sc.op(name=...)")
    if any(o.name == label and not o.facts.get("custom") for o in all_ops()):
        raise wrong(f"symc has an op called {label!r}", "give another: sc.op(name=...)")
    if derivative is not None and (infer is not None or other is not None):
        raise wrong(f"op {label}: derivative= is for elementwise ops, and excludes infer=, vjp= and jvp=")
    if scalar is not None and (infer is not None or expression is not None):
        raise wrong(f"op {label}: numba= is for elementwise ops, and excludes infer= and expression=")
    if scalar is not None and any(i.opname == "RAISE_VARARGS" for i in dis.get_instructions(scalar)):
        raise wrong(f"op {label}: its numba= function raises, which a kernel cannot", "return nan instead")


def _check_counts(label: str, fn: Callable[..., Any], derivative: Any, scalar: Any) -> None:
    """Raise InputError unless there is a derivative for every operand, and the scalar function takes as many."""
    arity = _arity(fn)
    given = len(derivative) if isinstance(derivative, tuple | list) else 1
    if derivative is not None and arity not in (None, given):
        raise InputError(f"op {label}: it takes {arity} operands, and derivative= has {given} functions",
                         where=[caller()], help="give a tuple with one function an operand, None for zero")  # fmt: skip
    if scalar is not None and arity not in (None, _arity(scalar)):
        raise InputError(f"op {label}: it takes {arity} operands, its numba= function {_arity(scalar)}",
                         where=[caller()])  # fmt: skip


def _arity(fn: Callable[..., Any]) -> int | None:
    """How many operands a function takes; None if that is not fixed or not known."""
    try:
        parameters = inspect.signature(fn).parameters.values()
    except ValueError:  # some functions written in C
        return None
    if any(p.kind not in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) or p.default is not p.empty for p in parameters):
        return None
    return len(parameters)


class _Own:
    """Types and values of one custom op."""

    def __init__(self, fn: Callable[..., Any], name: str, infer: Callable[..., Any] | None, kinds: str):
        self._fn, self._name, self._infer, self._kinds = fn, name, infer, kinds
        self._dtypes: dict[tuple[np.dtype, ...], np.dtype] = {}

    def infer(self, *types: TensorType) -> TensorType:
        if self._kinds and types:
            check_kind(self._name, types[0], self._kinds)
        if self._infer is None:
            return TensorType(self._dtype(tuple(t.dtype for t in types)), types[0].shape if types else ())
        dtype, shape = self._infer(*[_Spec(t) for t in types])
        return TensorType(dtype, [as_size(s, f"a size of {self._name}") for s in shape])

    def _dtype(self, dtypes: tuple[np.dtype, ...]) -> np.dtype:
        """The dtype of an elementwise result: what the function makes of ones."""
        if dtypes not in self._dtypes:
            try:
                with np.errstate(all="ignore"):
                    self._dtypes[dtypes] = np.asarray(self._fn(*[np.ones(1, d) for d in dtypes])).dtype
            except Exception as e:
                raise DTypeError(f"{self._name}: the function fails on {', '.join(map(str, dtypes))}: {e}") from e
        return self._dtypes[dtypes]

    def run(self, *arrays: Any) -> np.ndarray:
        out = np.asarray(self._fn(*map(_read_only, arrays)))
        expected = self._expected(arrays)
        if (out.dtype, out.shape) != expected:
            raise ShapeError(
                f"{self._name}: the function gives {out.dtype}{list(out.shape)}, not {expected[0]}{list(expected[1])}"
            )
        return out.copy() if any(np.may_share_memory(out, a) for a in arrays) else out

    def _expected(self, arrays: Sequence[np.ndarray]) -> tuple[np.dtype, tuple]:
        t = self.infer(*[TensorType(a.dtype, a.shape) for a in arrays])
        return t.dtype, t.shape


def _read_only(a: Any) -> np.ndarray:
    """A view that the user's function cannot write through: inputs are never modified."""
    view = np.asarray(a).view()
    view.flags.writeable = False
    return view


class _Spec:
    """What ``infer`` sees of an operand: dtype, shape and rank."""

    def __init__(self, t: TensorType):
        self.dtype, self.shape, self.ndim = t.dtype, user_shape(t.shape), t.ndim


def _tensors(values: Sequence[Value | None]) -> list[Any]:
    return [None if v is None else Tensor(v) for v in values]


def _like(item: Any, v: Value) -> Value:
    """The value of what a user's function returned, in the type of ``v``."""
    found = convert(as_tensor(item).value, v.dtype)
    if found.ndim > v.ndim or any(not isinstance(a, Dim) and not isinstance(b, Dim) and a not in (1, b)
                                  for a, b in zip(found.shape[::-1], v.shape[::-1])):  # fmt: skip
        raise ShapeError(f"{v.op.name}: {found.type} was given where {v.type} belongs")
    return stretch(found, v.shape)


def _derivative(name: str, derivative: Any, vjp: Callable | None, jvp: Callable | None) -> Derivative | None:
    if derivative is not None:
        given = derivative if isinstance(derivative, tuple | list) else (derivative,)
        return Elementwise(tuple(None if d is None else _partial(d) for d in given), singular=True)
    if vjp is None and jvp is None:
        return None
    forward = None if jvp is None else _forward(jvp)
    reverse = None if vjp is None else _reverse(name, vjp)
    return Custom(forward or _transposed_reverse(reverse), reverse or _transposed_forward(forward))


def _partial(d: Callable[..., Any]) -> Callable[..., Value]:
    return lambda out, *operands: _like(d(*_tensors(operands)), out)


def _forward(jvp: Callable) -> Callable[..., Value | None]:
    def run(tangents: Sequence[Value | None], v: Value) -> Value | None:
        found = jvp(_tensors(tangents), *_tensors(v.operands))
        return None if found is None else _like(found, v)

    return run


def _reverse(name: str, vjp: Callable) -> Callable[..., list[Value | None]]:
    def run(g: Value, v: Value) -> list[Value | None]:
        found = vjp(Tensor(g), *_tensors(v.operands))
        items = list(found) if isinstance(found, tuple | list) else [found]
        if len(items) != len(v.operands):
            raise GradientError(f"{name}: vjp gives {len(items)} cotangents for {len(v.operands)} operands")
        return [None if c is None else _like(c, o) for c, o in zip(items, v.operands, strict=True)]

    return run


# --- one direction from the other: both are linear, so each is the derivative of the other by what goes in ------------


def _transposed_reverse(reverse: Any) -> Callable[..., Value | None]:
    def run(tangents: Sequence[Value | None], v: Value) -> Value | None:
        g = fresh_input(v.type)
        pairs = [(c, t) for c, t in zip(reverse(g, v), tangents, strict=True) if c is not None and t is not None]
        return _linear_part([c for c, _ in pairs], [g], [t for _, t in pairs])[0] if pairs else None

    return run


def _transposed_forward(forward: Any) -> Callable[..., list[Value | None]]:
    def run(g: Value, v: Value) -> list[Value | None]:
        tangents = [fresh_input(o.type) if is_inexact(o.dtype) else None for o in v.operands]
        moved = [t for t in tangents if t is not None]
        found = iter(_linear_part([forward(tangents, v)], moved, [g]))
        return [None if t is None else next(found) for t in tangents]

    return run


def _linear_part(outputs: list[Value], leaves: list[Value], seeds: list[Value]) -> list[Value | None]:
    """The transpose of a linear map, which does not depend on the leaves: they may be any numbers, and become ones."""
    found = vjp_values(outputs, leaves, seeds)
    ones = {leaf: splat(1, leaf.type) for leaf in leaves}
    return [None if c is None else replace([c], ones)[0] for c in found]
