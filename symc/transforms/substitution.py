"""Values with some of the values that they are made of replaced: ``givens``, ``sc.substitute`` and ``sc.clone``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from symc.errors import DTypeError, InputError, ShapeError, SymcError
from symc.ir import location
from symc.ir.dim import Measured, Size, known_different, measured_size
from symc.ir.function import measured_names
from symc.ir.ops.ensure import ensured
from symc.ir.traverse import Substitution, free_inputs
from symc.ir.traverse import replace as replace_values
from symc.ir.types import DTYPE_NAMES, TensorType
from symc.ir.value import Value, fresh_input
from symc.numpy_api.promotion import check_range
from symc.tensors.callsite import caller
from symc.tensors.convert import as_tensor, convert
from symc.tensors.deferred import Deferred, contains_deferred, free_variables, held_tensors, instantiate
from symc.tensors.leaves import Leaf, leaf_of, register_leaf
from symc.tensors.pytree import flatten, unflatten
from symc.tensors.state import shared
from symc.tensors.tensor import Tensor


def substitute(outputs: Any, replacements: Any) -> Any:
    """The outputs, a value or any nest of values, with values that they are made of replaced.

    ``replacements``: ``{value: expression or array}``, or pairs. Inputs, states and computed values can be replaced, in
    loops and branches, too; all at once, and what replaces a value is not searched again. A replacement becomes the
    type of what it replaces: it is cast within a kind, and sizes that are not known to be equal are checked in a call.
    Raises DTypeError and ShapeError where the types differ.

    >>> x, y = sc.vector("x"), sc.vector("y")
    >>> sc.compile(sc.substitute(x**2 + x, {x: 2 * y}))(y=[1.0, 2.0])
    array([ 6., 20.])
    """
    with _line("substitute"):
        return _replaced(outputs, pairs(replacements, "substitute"), "substitute", strict=False)


def clone(outputs: Any, replace: Any = None, *, strict: bool = True, share_inputs: bool = True) -> Any:
    """The outputs with values replaced, as ``substitute`` does, over the same inputs and states, or over copies.

    ``strict``: a replacement must have the dtype of what it replaces. With ``share_inputs=False`` every input that is
    left is a new one of the same name and type, and every state a copy. Values never change, so that without
    replacements, over the same inputs, these are the outputs themselves.
    """
    changes = pairs(replace, "clone: replace")
    with _line("clone"):
        changes = pairs(replace, "clone: replace")
        return _replaced(outputs, changes if share_inputs else [*changes, *_copies(outputs, changes)], "clone", strict)


@contextmanager
def _line(called: str) -> Iterator[None]:
    """The user's line, for values and for errors."""
    loc = caller()
    with location.at(location.here() or (loc,)):
        try:
            yield
        except SymcError as e:
            e.attach((), (loc,))
            raise


def _copies(outputs: Any, changes: Sequence[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """The inputs and states that are not replaced, each with a copy."""
    leaves = flatten(outputs)[0]
    taken = {id(k.value if isinstance(k, Tensor) else k) for k, _ in changes}
    held = [t.value for t in held_tensors(leaves)]
    found: list[tuple[Any, Any]] = [
        (Tensor(v), _copy(v)) for v in free_inputs(held) if leaf_of(v).role != "body" and id(v) not in taken]
    return [*found, *[(v, Deferred(None, name=v.name, dtype=v.known_dtype, loc=v.loc, default=v.default))
                      for v in free_variables(leaves) if id(v) not in taken]]


def _copy(v: Value) -> Tensor:
    """An input, or a state, like another one."""
    leaf = leaf_of(v)
    if leaf.role == "state":
        return shared(leaf.shared.host(), leaf.name, shape=v.shape)
    return Tensor(register_leaf(fresh_input(v.type), Leaf(leaf.name, leaf.loc, default=leaf.default)))


def _replaced(outputs: Any, changes: Sequence[tuple[Any, Any]], called: str, strict: bool) -> Any:
    leaves, nest = flatten(outputs)
    deferred = {k: v for k, v in changes if isinstance(k, Deferred)}
    if deferred or contains_deferred(leaves):
        return unflatten(nest, _replay(leaves, deferred, changes, called))
    tensors = [as_tensor(x) for x in leaves]
    roots = [t.value for t in tensors]
    known = measured_names(roots) if Measured.made else []
    done = _exchanged([*roots, *[n.value for n in known]], changes, called, "replacement", strict)
    done = _measured_again(done, known) if known else done
    return unflatten(nest, [t if new is t.value else Tensor(new, weak=t.weak)
                            for t, new in zip(tensors, done, strict=False)])


def _measured_again(done: Sequence[Value], known: Sequence[Measured]) -> list[Value]:
    """The roots, in front of the new values of the sizes that are data, over sizes that are these values."""
    roots = list(done[:len(done) - len(known)])
    sizes: dict[str, Size] = {}
    for n, new in zip(known, done[len(roots):], strict=True):
        new, *_ = _at(sizes, [new])
        if new is not n.value:
            sizes[n] = measured_size(new, n.where)
    return _at(sizes, roots)


def _at(sizes: Mapping[str, Size], roots: Sequence[Value]) -> list[Value]:
    leaves = {v: v for v in free_inputs(roots)}
    return Substitution(sizes).values(roots, leaves, location.move) if sizes else list(roots)


def _replay(leaves: Sequence[Any], deferred: Mapping[Deferred, Any], changes: Sequence[Any], called: str) -> list[Any]:
    """Deferred values, recorded again over what replaces others of them. Their types are looked at in a call."""
    if len(deferred) < len(changes):
        raise InputError(f"{called}: an input with a type is replaced in a value without one",
                         where=location.in_order(location.here()),
                         help="declare it by sc.Variable, too; or give its value in givens={x: value}")
    own = {v: v for v in free_variables(leaves) if v not in deferred}
    return instantiate(leaves, {**own, **deferred})


def pairs(given: Any, what: str) -> list[tuple[Any, Any]]:
    """A mapping, or a sequence of pairs, as pairs."""
    if given is None:
        return []
    items: list[Any] = (
        list(given.items()) if isinstance(given, Mapping) else list(given) if isinstance(given, Sequence) else [given]
    )
    if any(not isinstance(p, tuple | list) or len(p) != 2 for p in items):
        raise InputError(
            f"{what} must be a dict, or pairs of a variable and its value", where=location.in_order(location.here())
        )
    return [(k, v) for k, v in items]


def fitted(new: Tensor, target: Tensor, what: str) -> Value:
    """``new`` in the type of ``target``: cast within a kind, sizes that are not known to be equal become guards."""
    said = f"{what} of {target.name or 'a value'}"
    rows = [target.describe(), new.describe("new value")]
    have, want = new.value, target.value.type
    number = new.weak and new.dtype.kind == "i" and want.dtype.kind in "iu"
    if new.dtype != want.dtype and not (number or np.can_cast(new.dtype, want.dtype, "same_kind")):
        raise DTypeError(
            f"{said}: {DTYPE_NAMES[new.dtype]} does not become {DTYPE_NAMES[want.dtype]} by itself",
            values=rows,
            help=f"convert it: value.astype({str(want.dtype)!r})",
        )
    if known_different(have.shape, want.shape):
        raise ShapeError(f"{said}: the shapes differ", values=rows, help=_shape_help(have.type, want))
    if number:
        check_range(new, want.dtype, said)
    return ensured(convert(have, want.dtype), want.shape)


def _shape_help(have: TensorType, want: TensorType) -> str:
    shape = ", ".join(map(str, want.shape))
    if have.ndim < want.ndim:
        return f"to repeat it everywhere: sc.broadcast_to(value, ({shape}{',' if want.ndim == 1 else ''}))"
    return "the new value must have the shape of the old one"


def substituted(roots: Sequence[Value], givens: Any) -> list[Value]:
    """Values after ``givens``."""
    return _exchanged(roots, pairs(givens, "givens"), "givens", "given value")


def _exchanged(roots: Sequence[Value], changes: Sequence[tuple[Any, Any]], called: str, what: str,
               strict: bool = False) -> list[Value]:
    mapping: dict[Value, Value] = {}
    for target, item in changes:
        if not isinstance(target, Tensor):
            raise InputError(f"{called}: {target!r} is not a symbolic value", where=location.in_order(location.here()))
        if leaf_of(target.value).role == "body":
            raise InputError(f"{called}: {leaf_of(target.value).name} exists in the steps of its loop only",
                             values=[target.describe()])
        new = as_tensor(item)
        if strict and new.dtype != target.dtype and not new.weak:
            raise DTypeError(f"{called}: {DTYPE_NAMES[target.dtype]} is replaced by {DTYPE_NAMES[new.dtype]}",
                             values=[target.describe(), new.describe("new value")],
                             help=f"convert it: value.astype({str(target.dtype)!r}), or say strict=False")
        mapping[target.value] = fitted(new, target, what)
    return replace_values(roots, mapping, location.move) if mapping else list(roots)
