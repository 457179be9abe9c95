"""``sc.op``: an operation of the user's own, as a record like any other, made from a NumPy function.

The NumPy function is the meaning. What is not given is not there: without a derivative the op has none, and without an
``expression`` or a ``numba`` function it is run by its NumPy function instead of being compiled into kernels.
``sc.check_op`` (``symc.tools.op_check``) tries what is given.
"""

from __future__ import annotations

import dis
import inspect
import math
import pickle
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from symc.codegen.cuda.user import CudaKernel
from symc.codegen.kernel.user_functions import add as add_function
from symc.errors import DTypeError, InputError, ShapeError, of_handler
from symc.ir.attrs import Array
from symc.ir.bodies import make_scan
from symc.ir.dim import Dim, Size
from symc.ir.facts import CustomOp, Facts
from symc.ir.op import Custom, Decompose, Derivative, Element, Elementwise, Op, all_ops, register, unregister
from symc.ir.ops import effect as effects
from symc.ir.ops.effect import IDENTITY, read_only
from symc.ir.ops.elementwise import check_kind
from symc.ir.ops.kernel import results_of
from symc.ir.types import TensorType, TupleType, Type, as_dtype
from symc.ir.value import Value, fresh_input, next_serial
from symc.numpy_api.promotion import together
from symc.tensors.callsite import caller
from symc.tensors.convert import as_tensor
from symc.tensors.public import located
from symc.tensors.sizes import SymbolicSize, as_size, user_shape, user_size
from symc.tensors.tensor import Tensor
from symc.transforms import op_travel
from symc.transforms.custom_derivative import all_fitted, custom_rule, dense, fitted, tensors


def op(fn: Callable[..., Any] | None = None, *, name: str | None = None, infer: Callable[..., Any] | None = None,
       derivative: Any = None, vjp: Callable[..., Any] | None = None, jvp: Callable[..., Any] | None = None,
       expression: Callable[..., Any] | None = None, numba: Callable[..., Any] | None = None, cuda: Any = None,
       batch: Callable[..., Any] | None = None, samples: Iterable[Any] | None = None,
       effect: bool = False) -> Any:  # fmt: skip
    """Make an op of a NumPy function: ``@sc.op`` or ``@sc.op(derivative=...)``.

    The function takes arrays and returns an array, or a tuple of arrays. Its keyword-only parameters are attributes:
    numbers, strings, sizes or constant arrays that belong to the graph. Every function below gets them by name, too.

    * Without ``infer`` the op is elementwise: operands are promoted and broadcast, the result has their shape, and the
      dtype that the function gives for such operands. ``infer(*operands)`` takes what has a dtype, shape and ndim and
      returns ``(dtype, shape)`` of the result, or a list of such pairs for several results.
    * ``derivative``: of an elementwise op, d result / d operand as a function of the operands; one function an operand.
    * ``vjp(g, *operands)`` returns the cotangent of every operand (None for zero), ``jvp(tangents, *operands)`` the
      tangent of the result; a tangent is None where it is zero. With several results, g and what jvp returns are
      tuples. The one that is not given is the other, transposed.
    * ``expression(*operands)``: the same values from other functions of symc; kernels are made of it.
    * ``numba(*numbers)``: the same for one element of an elementwise op on floats, a function that ``numba.njit``
      compiles and that raises nothing; kernels call it. Attributes (numbers) follow the operands, by position.
    * ``cuda``: the same on a CUDA device: of an elementwise op, statements in C++ that compute ``out`` from the
      operands (and attributes) by their names for one element, ``"out = x * x;"``; of any op, an ``sc.CudaKernel``.
    * ``batch(batched, *operands)``: the results over a leading axis, for operands of which those flagged have it. By
      default an elementwise op is applied to all entries at once, and any other to one after another, in a loop.
    * ``samples``: operands for ``sc.check_op``: arrays, or tuples of them; a dict at the end of a tuple are attributes.
    * ``effect``: the function is called for what it does (plot, log). The result is the first operand; what the
      function returns is not used. Calls keep their place and order, as those of ``sc.debug``, and derivatives pass.

    Returns the function on symbolic values. Raises InputError for a name that an op of symc or of another module has,
    and for arguments that do not fit together.
    """
    if fn is None:
        return lambda f: op(f, name=name, infer=infer, derivative=derivative, vjp=vjp, jvp=jvp, expression=expression,
                            numba=numba, cuda=cuda, batch=batch, samples=samples, effect=effect)  # fmt: skip
    label = name or fn.__name__
    scalar = getattr(numba, "py_func", numba)
    own = _Own(fn, label, _first if effect and infer is None else infer, "f" if scalar else "")
    _check(label, fn, infer, derivative, vjp or jvp, expression, scalar, effect, cuda)
    _check_counts(label, own, derivative, scalar)
    facts = Facts(custom=CustomOp(_module(fn), caller(), cuda, own.names, own.defaults, own.attributes, own.shown,
                                  _reduced))
    if batch is not None or infer is not None or effect:
        facts.batch = _given_batch(label, own, batch) if batch is not None else _loop
    traits = frozenset({"effect", "barrier"} if effect else () if infer else {"elementwise"})
    lowering = _lowering(label, own, expression, scalar, cuda)
    traits |= {"python"} if lowering is None else frozenset()
    samples = None if samples is None else list(samples)
    given = None if samples is None else [sample(s, own.defaults) for s in samples]
    run = own.call if effect else own.run
    rule = IDENTITY if effect else _derivative(own, derivative, vjp, jvp)
    record = Op(label, own.infer, run, rule, lowering, traits,
                None if given is None else lambda: iter(given), fn.__doc__ or "", facts)  # fmt: skip
    if label in {o.name for o in all_ops()}:  # defined again, as in a notebook
        unregister(label)
    register(record)
    op_travel.note(label, uuid.uuid4().hex, fn, dict(
        name=label, infer=infer, derivative=derivative, vjp=vjp, jvp=jvp, expression=expression, numba=numba, cuda=cuda,
        batch=batch, samples=samples, effect=effect))
    return _builder(record, own, infer is None and not effect, effect)


def _builder(record: Op, own: _Own, elementwise: bool, effect: bool) -> Callable[..., Any]:
    """The function on symbolic values."""

    def call(*operands: Any, **attrs: Any) -> Any:
        given: dict[str, Any] = own.attributes(attrs)
        if effect:
            given["serial"] = next_serial()
        values = together(operands, own.name) if elementwise else [as_tensor(o).value for o in operands]
        v = record(*values, **given)
        found = tuple(Tensor(r) for r in results_of(v))
        if isinstance(v.type, TupleType) and isinstance(record.lowering, Decompose):
            raise InputError(f"op {own.name}: expression= is for ops with one result")
        return found if isinstance(v.type, TupleType) else found[0]

    call.__name__, call.__doc__ = own.name, record.doc
    call.__module__, call.__qualname__ = _module(own.fn), getattr(own.fn, "__qualname__", own.name)
    call.op = record  # type: ignore[attr-defined]
    return located(call)


def _lowering(label: str, own: _Own, expression: Callable | None, scalar: Callable | None, cuda: Any) -> Any:
    if expression is not None:
        return Decompose(lambda v: fitted(expression(*tensors(v.operands), **own.shown(v.attrs)), v.type, label))
    if scalar is not None:
        statements = ([*own.names, *own.defaults], cuda) if isinstance(cuda, str) else None
        add_function(label, scalar, len(inspect.signature(scalar).parameters) - len(own.defaults), own.defaults,
                     statements)
        return Element()
    return None


def _reduced(record: Op) -> tuple[Any, ...]:
    return arrived, op_travel.packed(record)


def arrived(name: str, module: str, token: str, data: bytes | None) -> Op:
    """The op of a pickle."""
    found = op_travel.found(name, module, token, data)
    if found is None:
        assert data is not None
        fn, options = pickle.loads(data)
        found = op(fn, **options).op
        op_travel.note(name, token, fn, options)
    return found


# --- what cannot be an op ---------------------------------------------------------------------------------------------


def _module(fn: Callable[..., Any]) -> str:
    module = getattr(fn, "__module__", None) or "?"
    return "__main__" if module in op_travel.MAIN else module


def _check(label: str, fn: Callable, infer: Any, derivative: Any, other: Any, expression: Any, scalar: Any,
           effect: bool, cuda: Any) -> None:  # fmt: skip
    """Raise InputError, with the user's line, for what cannot be an op."""

    def wrong(what: str, help: str | None = None, values: Sequence[Any] = ()) -> InputError:
        return InputError(what, where=[caller()], values=values, help=help)

    if not label.isidentifier():
        raise wrong(f"an op cannot be called {label!r}", "give a name: sc.op(name=...)")
    known = next((o for o in all_ops() if o.name == label), None)
    theirs = None if known is None else known.facts.custom
    if known is not None and theirs is None:
        raise wrong(f"symc has an op called {label!r}", "give another: sc.op(name=...)")
    if theirs is not None and theirs.module != _module(fn):
        raise wrong(f"module {theirs.module} has an op called {label!r}, which this one would replace",
                    "give this one another name: sc.op(name=...)", [("first defined", None, theirs.line)])
    if derivative is not None and (infer is not None or other is not None):
        raise wrong(f"op {label}: derivative= is for elementwise ops, and excludes infer=, vjp= and jvp=")
    if scalar is not None and (infer is not None or expression is not None):
        raise wrong(f"op {label}: numba= is for elementwise ops, and excludes infer= and expression=")
    if scalar is not None and any(i.opname == "RAISE_VARARGS" for i in dis.get_instructions(scalar)):
        raise wrong(f"op {label}: its numba= function raises, which a kernel cannot", "return nan instead")
    if cuda is not None and not isinstance(cuda, str | CudaKernel):
        raise wrong(f"op {label}: cuda= is text, or an sc.CudaKernel, not {type(cuda).__name__}")
    if isinstance(cuda, str) and infer is not None:
        raise wrong(f"op {label}: cuda= with text is for elementwise ops", "sc.CudaKernel is for ops with infer=")
    if effect and any(f is not None for f in (infer, derivative, other, expression, scalar)):
        raise wrong(f"op {label}: effect= excludes infer=, derivatives, expression= and numba=")


def _check_counts(label: str, own: _Own, derivative: Any, scalar: Any) -> None:
    """Raise InputError unless there is a derivative for every operand, and the scalar function takes as many."""
    given = len(derivative) if isinstance(derivative, tuple | list) else 1
    if derivative is not None and own.arity not in (None, given):
        raise InputError(f"op {label}: it takes {own.arity} operands, and derivative= has {given} functions",
                         where=[caller()], help="give a tuple with one function an operand, None for zero")  # fmt: skip
    wanted = None if own.arity is None else own.arity + len(own.defaults)
    if scalar is not None and wanted not in (None, _positional(scalar)):
        attributes = f" and {len(own.defaults)} attributes" if own.defaults else ""
        raise InputError(f"op {label}: it takes {own.arity} operands{attributes}, its numba= function "
                         f"{_positional(scalar)}", where=[caller()])  # fmt: skip


def _parameters(fn: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(fn).parameters.values())
    except ValueError:  # some functions written in C
        return []


def _positional(fn: Callable[..., Any]) -> int | None:
    """The number of operands that a function takes; None if that is not fixed or not known."""
    parameters = [p for p in _parameters(fn) if p.kind is not p.KEYWORD_ONLY]
    fixed = all(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty for p in parameters)
    return len(parameters) if fixed and parameters else None


# --- types and values -------------------------------------------------------------------------------------------------

_REQUIRED = inspect.Parameter.empty


class _Own:
    """Types, values and attributes of one custom op. ``defaults``: attribute -> default, in the order of the function.
    """

    def __init__(self, fn: Callable[..., Any], name: str, infer: Callable[..., Any] | None, kinds: str):
        self.fn, self.name, self._infer, self._kinds = fn, name, infer, kinds
        self.arity = _positional(fn)
        self.names = [p.name for p in _parameters(fn) if p.kind is not p.KEYWORD_ONLY]
        self.defaults = {p.name: p.default for p in _parameters(fn) if p.kind is p.KEYWORD_ONLY}
        self._dtypes: dict[Any, np.dtype] = {}

    def attributes(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The attributes of a call as the graph holds them."""
        for key in given:
            if key not in self.defaults:
                known = ", ".join(self.defaults) or "none"
                raise InputError(f"{self.name} has no attribute {key!r}", help=f"its attributes: {known}")
        out = {}
        for key, default in self.defaults.items():
            item = given.get(key, default)
            if item is _REQUIRED:
                raise InputError(f"{self.name}: the attribute {key!r} is missing")
            out[key] = self._held(key, item)
        return out

    def _held(self, key: str, item: Any) -> Any:
        if isinstance(item, SymbolicSize):
            return item.dim
        if isinstance(item, np.ndarray):
            return Array(item)
        if isinstance(item, Tensor):
            raise InputError(f"{self.name}: the attribute {key!r} is a symbolic value", values=[item.describe()],
                             help="what is computed is an operand; attributes are known numbers")  # fmt: skip
        if self._kinds and not (isinstance(item, int | float) and math.isfinite(item)):
            raise InputError(f"{self.name}: the attribute {key!r} must be a finite number for numba=, not {item!r:.40}")
        return item

    def shown(self, attrs: Mapping[str, Any]) -> dict[str, Any]:
        """Attributes as the user's functions get them."""

        def plain(a: Any) -> Any:
            return a.data if isinstance(a, Array) else user_size(a) if isinstance(a, Dim) else a

        return {k: plain(a) for k, a in attrs.items() if k in self.defaults}

    def infer(self, *types: TensorType, **attrs: Any) -> Type:
        if self._kinds and types:
            check_kind(self.name, types[0], self._kinds)
        shown = self.shown(attrs)
        if self._infer is None:
            return TensorType(self._dtype(tuple(t.dtype for t in types), shown), types[0].shape if types else ())
        found = self._infer(*[_Spec(t) for t in types], **shown)
        several = isinstance(found, list) or isinstance(found[0], tuple | list)
        pairs = [self._type(*pair) for pair in (found if several else [found])]
        return TupleType(pairs) if several else pairs[0]

    def _type(self, dtype: Any, shape: Iterable[Any]) -> TensorType:
        return TensorType(as_dtype(dtype), [as_size(s, f"a size of {self.name}") for s in shape])

    def _dtype(self, dtypes: tuple[np.dtype, ...], attrs: dict[str, Any]) -> np.dtype:
        """The dtype of an elementwise result: what the function makes of ones."""
        key = (dtypes, tuple((k, type(a), str(a)) for k, a in attrs.items()))
        if key not in self._dtypes:
            try:
                with np.errstate(all="ignore"):
                    self._dtypes[key] = np.asarray(self.fn(*[np.ones(1, d) for d in dtypes], **attrs)).dtype
            except Exception as e:
                if of_handler(e):
                    raise
                raise DTypeError(f"{self.name}: the function fails on {', '.join(map(str, dtypes))}: {e}") from e
        return self._dtypes[key]

    def run(self, *arrays: Any, **attrs: Any) -> Any:
        """The reference of the record. Raises ShapeError when the function does not give what is inferred."""
        t = self.infer(*[TensorType(a.dtype, a.shape) for a in map(np.asarray, arrays)], **attrs)
        found = self.fn(*map(read_only, arrays), **{k: a for k, a in attrs.items() if k in self.defaults})
        if not isinstance(t, TupleType):
            return self._result(found, t, "", arrays)
        if not isinstance(found, tuple | list) or len(found) != len(t.items):
            given = len(found) if isinstance(found, tuple | list) else 1
            raise ShapeError(f"{self.name}: the function gives {given} results, infer {len(t.items)}")
        pairs = enumerate(zip(found, t.items, strict=True))
        return tuple(self._result(x, own, f" for result {k}", arrays) for k, (x, own) in pairs)

    def call(self, *arrays: Any, **attrs: Any) -> np.ndarray:
        """The reference of an op that is there for its effect."""
        if not effects.is_quiet():
            self.fn(*map(read_only, arrays), **{k: a for k, a in attrs.items() if k in self.defaults})
        return np.array(arrays[0])

    def _result(self, found: Any, t: TensorType, which: str, arrays: Sequence[Any]) -> np.ndarray:
        out = np.asarray(found)
        if (out.dtype, out.shape) != (t.dtype, t.shape):
            raise ShapeError(f"{self.name}: the function gives {out.dtype}{list(out.shape)}{which}, not "
                             f"{t.dtype}{list(t.shape)}")  # fmt: skip
        return out.copy() if any(np.may_share_memory(out, a) for a in arrays) else out


def _first(first: Any, *others: Any, **attrs: Any) -> tuple[Any, Any]:
    """Type that ``infer`` gives an op with an effect."""
    return first.dtype, first.shape


class _Spec:
    """Operand as ``infer`` sees it: dtype, shape and rank."""

    def __init__(self, t: TensorType):
        self.dtype, self.shape, self.ndim = t.dtype, user_shape(t.shape), t.ndim


def sample(item: Any, defaults: Mapping[str, Any]) -> tuple[tuple, dict]:
    """One sample as the records hold it: arrays, and all attributes."""
    parts = item if isinstance(item, tuple) else (item,)
    attrs = parts[-1] if parts and isinstance(parts[-1], dict) else {}
    arrays = tuple(np.asarray(a) for a in (parts[:-1] if attrs else parts))
    return arrays, {k: attrs.get(k, d) for k, d in defaults.items()}


# --- derivatives and batches ------------------------------------------------------------------------------------------


def _derivative(own: _Own, derivative: Any, vjp: Callable | None, jvp: Callable | None) -> Derivative | None:
    if derivative is not None:
        given = derivative if isinstance(derivative, tuple | list) else (derivative,)
        return Elementwise(tuple(None if d is None else _partial(own, d) for d in given), singular=True)
    if vjp is None and jvp is None:
        return None
    return _custom(own, vjp, jvp)


def _partial(own: _Own, d: Callable[..., Any]) -> Callable[..., Value]:
    return lambda out, *operands: fitted(d(*tensors(operands), **own.shown(out.attrs)), out.type, own.name)


def _custom(own: _Own, vjp: Callable | None, jvp: Callable | None) -> Custom:
    def forward(tangents: Sequence[Value | None], v: Value) -> list[Value | None]:
        assert jvp is not None
        found = jvp(tensors(tangents), *tensors(v.operands), **own.shown(v.attrs))
        types = v.types
        found = found if isinstance(v.type, TupleType) else [found]
        return all_fitted(found, types, own.name, "jvp gives {given} tangents for {wanted} results")

    def reverse(cotangents: Sequence[Value | None], v: Value) -> list[Value | None]:
        assert vjp is not None
        several = isinstance(v.type, TupleType)
        g = tuple(dense(cotangents, v.type.items)) if several else Tensor(cotangents[0])  # type: ignore[arg-type]
        found = vjp(g, *tensors(v.operands), **own.shown(v.attrs))
        types = [o.type for o in v.operands]
        return all_fitted(found, types, own.name, "vjp gives {given} cotangents for {wanted} operands")

    return custom_rule(forward if jvp is not None else None, reverse if vjp is not None else None)


def _given_batch(label: str, own: _Own, batch: Callable[..., Any]) -> Callable[..., Value]:
    """The batching rule that a user states."""

    def rule(v: Value, operands: Sequence[Value], flags: Sequence[bool], n: Size) -> Value:
        attrs = own.shown(v.attrs)
        found = batch(tuple(flags), *tensors(operands), **attrs)
        if isinstance(v.type, TupleType):
            raise InputError(f"op {label}: batch= is for ops with one result; without it the entries run in a loop")
        return fitted(found, TensorType(v.dtype, (n, *v.shape)), label)

    return rule


def _loop(v: Value, operands: Sequence[Value], flags: Sequence[bool], n: Size) -> Value:
    """One entry after another."""
    leaves = [fresh_input(o.type) for o, f in zip(v.operands, flags, strict=True) if f]
    rows = iter(leaves)
    body = v.op(*[next(rows) if f else o for o, f in zip(operands, flags, strict=True)], **v.attrs)
    xs = [o for o, f in zip(operands, flags, strict=True) if f]
    return make_scan([], xs, n, False, leaves, results_of(body))
