"""Arrays of a traced function that share memory where NumPy's do: what is written to one is read from the others.

Values never change; a ``Tensor`` is a handle that may come to hold another one. Handles of one memory have an
``Alias``: the ``Storage``, whose value is that of the array that was made, and the steps (slices, reshapes, transposes)
from it to the view. A write goes back along the steps to the storage; the other handles read it again when they are
used.

Where NumPy itself decides by the layout in memory, and that is not known, one of the two may be used after a write to
the other, and the second use is an error. So is a write to what was not made in the function that is running.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from symc.errors import SymbolicValueError
from symc.ir.dim import Size, known_equal, product
from symc.ir.location import Loc
from symc.ir.op import lookup
from symc.ir.ops.shape import in_order, in_shape, inverse_permutation
from symc.ir.size_values import evaluate
from symc.ir.traverse import rebuild
from symc.ir.value import Value
from symc.numpy_api.parsed_index import Parsed
from symc.numpy_api.updates import insert
from symc.tensors.callsite import Scope, active, caller
from symc.tensors.deferred import mapped
from symc.tensors.leaves import leaf_of
from symc.tensors.public import API
from symc.tensors.state import SharedVariable
from symc.tensors.tensor import Tensor

COPY = "x = x.copy() first"
Strides = tuple[Size, ...] | None


class Storage:
    """Memory of one array. ``refused``: why it is not written to. ``doubts``: storages that may be the same memory.
    ``lost``: the line after which its content is not known."""

    __slots__ = ("__weakref__", "doubts", "lost", "refused", "scope", "value", "views")

    def __init__(self, value: Value, scope: Scope | None, refused: tuple[str, str] | None):
        self.value, self.scope, self.refused = value, scope, refused
        self.views: dict[int, weakref.ref[Tensor]] = {}
        self.doubts: list[weakref.ref[Storage]] = []
        self.lost: Loc | None = None

    def forget(self, keep: Tensor | None = None) -> None:
        """Have all handles but one read again."""
        for ref in list(self.views.values()):
            t = ref()
            if t is not None and t is not keep:
                with suppress(AttributeError):  # it was not read since
                    del t.value


class Alias:
    """View of a storage through a handle. ``strides`` in elements, None where they are not known."""

    __slots__ = ("readonly", "steps", "storage", "strides")

    def __init__(self, storage: Storage, steps: tuple[Value, ...], strides: Strides, readonly: bool = False):
        self.storage, self.steps, self.strides, self.readonly = storage, steps, strides, readonly


def contiguous(shape: Sequence[Size]) -> tuple[Size, ...]:
    """The strides of an array in the order of C."""
    return tuple(product(shape[a + 1:]) for a in range(len(shape)))


def alias_of(t: Tensor, strides: Strides = None) -> Alias:
    """The view of its storage through a handle, which is made if it has none. A new array of one axis has known
    strides."""
    held = t.held
    if isinstance(held, Alias):
        return held
    scope, now = held, active()
    refused = None if scope is not None else _refusal(t)
    if scope is not now and scope is not None and now is not None and scope is now.outer and _is_param(t):
        scope = now  # a loop hands a new array to each step
    storage = Storage(t.value, scope, refused)
    known = contiguous(t.value.shape) if t.value.ndim <= 1 and refused is None else strides
    return _attach(t, Alias(storage, (), known))


def _attach(t: Tensor, alias: Alias) -> Alias:
    views, key = alias.storage.views, id(t)
    views[key] = weakref.ref(t, lambda _: views.pop(key, None))
    t.held = alias
    return alias


def _is_param(t: Tensor) -> bool:
    return t.value.op.name == "input" and leaf_of(t.value).role == "body"


def _refusal(t: Tensor) -> tuple[str, str]:
    if isinstance(t, SharedVariable):
        return f"{t.name or 'it'} is a state", "compile(..., updates={w: new}) changes states"
    name = leaf_of(t.value).name
    if leaf_of(t.value).role == "arg" and name:
        return f"{name} is an argument, and NumPy would change the caller's array", COPY.replace("x", name)
    return "it was made outside of the traced function", COPY


# --- writing ----------------------------------------------------------------------------------------------------------


def check_writable(t: Tensor) -> None:
    """Raises SymbolicValueError where a write is refused, or would not be seen where it should."""
    scope = active()
    if scope is None:
        raise SymbolicValueError("symbolic values never change", values=[t.describe()], where=[caller()],
                                 help="y = x.at[index].set(value) gives the changed value; a function under sc.jit may "
                                 "assign to arrays that it made")
    if t.held is scope and not isinstance(t, SharedVariable) and t.value.ndim:
        return
    if t.held is scope and not t.value.ndim:
        raise SymbolicValueError("a number is not written to", values=[t.describe()], where=[caller()],
                                 help="np.zeros(()) is an array without axes, and so is x[0, ...]")
    alias = alias_of(t)
    storage = alias.storage
    maybe = [s for s in (ref() for ref in storage.doubts) if s is not None]
    refused = next((s.refused for s in (storage, *maybe) if s.refused), None)
    if isinstance(t, SharedVariable):
        refused = _refusal(t)
    if refused is None and storage.scope is not scope:
        refused = ("it was made outside of the function that is being traced here, such as the body of a loop",
                   "return the new value from the function")
    if refused is None and alias.readonly:
        refused = "NumPy's view of it is read-only", COPY
    if refused is not None:
        raise SymbolicValueError(f"the array is not written to: {refused[0]}", values=[t.describe()], where=[caller()],
                                 help=refused[1])


def write(t: Tensor, new: Value) -> None:
    """Put ``new``, of the same type, in the place of what a writable handle holds; what shares its memory sees it."""
    alias = t.held
    t.weak = False
    if isinstance(alias, Alias):
        storage = alias.storage
        storage.value = _put_back(alias.steps, storage.value, new)
        storage.forget(keep=t)
        for other in (ref() for ref in storage.doubts):
            if other is not None:
                other.lost = caller()
                other.forget()
    t.value = new


def current(t: Tensor) -> Value:
    """The value of a handle after a write through another. Raises SymbolicValueError where that is not known."""
    alias = t.held
    if alias.storage.lost is not None:
        raise SymbolicValueError(
            "it is not known whether the array was changed", where=[caller(), alias.storage.lost],
            help="in NumPy it may share memory with an array that was written to since, by how that lies in memory; "
            "y = x.copy() or y = x.reshape(...).copy() says which is meant")
    v = alias.storage.value
    for step in alias.steps:
        v = _forward(step, v)
    t.value = v
    return v


def _forward(step: Value, v: Value) -> Value:
    return rebuild(step, [v, *step.operands[1:]])


def _put_back(steps: Sequence[Value], base: Value, new: Value) -> Value:
    """The value of a storage, given that of a view."""
    at: list[Value] = []
    for step in steps:
        at.append(base)
        base = _forward(step, base)
    for step, x in zip(reversed(steps), reversed(at), strict=True):
        new = _WRITES[step.op.name](step, x, new)
    return new


def _write_slice(step: Value, x: Value, u: Value) -> Value:
    start, size, by = (list(step.attrs[k]) for k in ("start", "size", "step"))
    return insert(x, Parsed(start, size, by, layout=[*range(x.ndim)]), u)


_SHAPES = ("reshape", "ensure_shape")
#: How the operand of a view changes with it: the op, its old operand, the new view.
_WRITES: dict[str, Callable[[Value, Value, Value], Value]] = {
    "reshape": lambda step, x, u: in_shape(u, x.shape),
    "ensure_shape": lambda step, x, u: lookup("ensure_shape")(u, shape=x.shape),
    "transpose": lambda step, x, u: in_order(u, inverse_permutation(step.attrs["perm"])),
    "slice": _write_slice,
    "gather": lambda step, x, u: lookup("scatter")(x, u, *step.operands[1:], axes=step.attrs["axes"], mode="set"),
    "real": lambda step, x, u: lookup("complex")(u, lookup("imag")(x)),
    "imag": lambda step, x, u: lookup("complex")(lookup("real")(x), u),
}


# --- views ------------------------------------------------------------------------------------------------------------


def link(base: Tensor, t: Tensor, kind: str) -> bool:
    """Have ``t``, of which a function of NumPy's makes a view of ``base`` where it can, read what ``base`` reads.

    False if it is a copy. A diagonal ("always", "einsum") is a view though it is read by index arrays.
    """
    diagonal = kind in ("always", "einsum")
    steps = _steps(base.value, t.value, diagonal)
    if steps is None and not diagonal:
        return False
    own = alias_of(base)
    shares: bool | None = None
    strides: Strides = None
    if steps is not None and kind != "maybe":
        shares, strides = _layout(base.value.shape, own.strides, steps, kind == "ravel")
    if shares is False:
        return False
    if steps is not None and shares:
        readonly = own.readonly or kind == "always" or any(s.op.name not in _WRITES for s in steps)
        _attach(t, Alias(own.storage, (*own.steps, *steps), strides, readonly))
        return True
    other = Storage(t.value, active(), None)
    _attach(t, Alias(other, (), None, readonly=diagonal))
    for s in [own.storage, *[s for s in (ref() for ref in own.storage.doubts) if s is not None]]:
        s.doubts.append(weakref.ref(other))
        other.doubts.append(weakref.ref(s))
    return True


def _steps(base: Value, v: Value, diagonal: bool = False) -> tuple[Value, ...] | None:
    """The ops from one value to another that NumPy does by strides; None if there are others. Index arrays are among
    them for a ``diagonal``."""
    out: list[Value] = []
    while v is not base:
        by_arrays = any(o.ndim for o in v.operands[1:])
        if v.op.name not in (*_WRITES, "broadcast") or by_arrays and not diagonal:
            return None
        out.append(v)
        v = v.operands[0]
    return tuple(reversed(out))


def _layout(
    shape: tuple[Size, ...], strides: Strides, steps: Sequence[Value], ravel: bool
) -> tuple[bool | None, Strides]:
    """Tests whether a view shares memory, None where that is not known, and its strides. ``ravel``: it does only where
    the elements follow each other."""
    for k, step in enumerate(steps):
        new = step.type.shape  # type: ignore[union-attr]
        if step.op.name in _SHAPES and k + 1 < len(steps) and steps[k + 1].op.name in _SHAPES:
            continue  # one reshape, which asserts a size on the way
        if step.op.name == "transpose" and strides is not None:
            strides = tuple(strides[a] for a in step.attrs["perm"])
        elif step.op.name == "slice" and strides is not None:
            strides = tuple(s * k for s, k in zip(strides, step.attrs["step"], strict=True))
        elif step.op.name == "gather" and strides is not None and not step.operands[1].ndim:
            strides = tuple(s for a, s in enumerate(strides) if a not in step.attrs["axes"])
        elif step.op.name in _SHAPES:
            shares, strides = _reshaped(shape, strides, new, ravel)
            if not shares:
                return shares, None
        else:
            strides = None
        shape = new
    if ravel and not any(s.op.name in _SHAPES for s in steps):
        return _reshaped(shape, strides, shape, ravel)
    return True, strides


def _reshaped(
    shape: tuple[Size, ...], strides: Strides, new: tuple[Size, ...], ravel: bool
) -> tuple[bool | None, Strides]:
    """Tests whether a reshape is a view, and its strides."""
    if not ravel and [s for s in shape if s != 1] == [s for s in new if s != 1]:  # axes of size 1 come and go
        if strides is None:
            return True, None
        rest = iter([t for s, t in zip(shape, strides, strict=True) if s != 1])
        return True, tuple(1 if s == 1 else next(rest) for s in new)
    if strides is None:
        return None, None
    if all(s == 1 or known_equal(have, want) for s, have, want in zip(shape, strides, contiguous(shape), strict=True)):
        return True, contiguous(new)
    scope = active()
    assert scope is not None
    answer = scope.trace.ask(
        ("view", shape, strides, new, ravel),
        lambda sizes: _is_view(ravel, *[[evaluate(s, sizes) for s in part] for part in (shape, strides, new)]),
        "whether a reshape is a view", caller())
    return answer, None


def _is_view(ravel: bool, shape: list[int], strides: list[int], new: list[int]) -> bool:
    """True if NumPy reshapes an array with these strides without a copy: axes that it merges follow each other."""
    if 0 in shape:
        return True
    old = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    if ravel:
        return [s for _, s in old] == list(contiguous([n for n, _ in old]))
    want = [n for n in new if n != 1]
    i = j = 0
    while i < len(old) and j < len(want):
        have, need, first = old[i][0], want[j], i
        i, j = i + 1, j + 1
        while have != need:
            if have < need:
                have, i = have * old[i][0], i + 1
            else:
                need, j = need * want[j], j + 1
        if any(old[k][1] != old[k + 1][0] * old[k + 1][1] for k in range(first, i - 1)):
            return False
    return True


# --- results of functions ---------------------------------------------------------------------------------------------


def settled(kind: str, scope: Scope, args: tuple, kwargs: dict[str, Any], out: Any) -> Any:
    """The results of a public function as NumPy gives them: views ("view", "item", "ravel", "always", "einsum"), views
    or copies ("maybe"), new arrays whose layout is known ("new") or may be ("ufunc"), new arrays (""), or what was
    found ("same")."""
    if kind == "same":
        return out
    given: list[Tensor] = []
    if kwargs.get("copy") or kind == "einsum" and not _moves_axes(args[0]):
        kind = ""
    mapped(lambda i: given.append(i) if isinstance(i, Tensor) else None, (args, kwargs))

    def one(t: Any) -> Any:
        if type(t) is not Tensor:
            return t
        same = any(t is g for g in given)
        if kind in ("view", "ravel", "maybe", "always", "einsum") or kind == "item" and not _is_number(t, args[1]):
            if same:
                return t
            fresh = t if t.held is scope else Tensor(t.value, t.weak)
            arrays = [g for g in given if g.ndim or isinstance(g.held, Alias)]
            if any(link(g, fresh, kind if kind != "always" or t.ndim < g.ndim else "") for g in arrays):
                return fresh
        if same or t.held is not scope:
            t = Tensor(t.value, t.weak)
        if kind == "new" or kind == "ufunc" and _in_order(t, args):
            alias_of(t, contiguous(t.value.shape))
        return t

    return mapped(one, out)


def _in_order(t: Tensor, args: tuple) -> bool:
    """True if a ufunc gives an array in the order of C: from such arrays, one of them of the same shape."""
    if t.ndim < 2:
        return False
    arrays = [a for a in args if isinstance(a, Tensor | np.ndarray) and a.ndim > 1]
    known = [isinstance(a.held, Alias) and a.held.strides == contiguous(a.value.shape) if isinstance(a, Tensor)
             else a.flags.c_contiguous for a in arrays]
    return all(known) and any(isinstance(a, Tensor) and a.value.shape == t.value.shape for a in arrays)


def _is_number(t: Tensor, index: Any) -> bool:
    """True if NumPy gives a number, not an array: ``x[0]``, but not ``x[0, ...]``."""
    return not t.value.ndim and not any(i is Ellipsis for i in (index if isinstance(index, tuple) else (index,)))


def _moves_axes(subscripts: Any) -> bool:
    """True if einsum gives a view: one operand, of which no axis is summed."""
    have, _, out = str(subscripts).replace(" ", "").partition("->")
    return set(have) == set(out)


def flat(t: Tensor) -> Tensor:
    """``x.flat``, which writes to x however that lies in memory."""
    out = API["array"](API["ravel"](t))
    steps = _steps(t.value, out.value)
    assert steps is not None
    own = alias_of(t)
    _attach(out, Alias(own.storage, (*own.steps, *steps), None, own.readonly))
    return out
