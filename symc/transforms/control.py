"""Loops and branches for users: ``scan``, ``while_loop``, ``cond``; what is made of them is in ``folds``.

A user's function is called once, with symbolic values; what it builds becomes the body of one op (``symc.ir.bodies``).
Nests are taken apart here and put together again, dtypes and shapes of carries are settled, mistakes are reported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symc.errors import DTypeError, InputError, ShapeError, SymcError
from symc.ir import location
from symc.ir.bodies import built, make_cond, make_scan, make_while
from symc.ir.dim import Size, known_equal
from symc.ir.ops.control import COUNT, element_type
from symc.ir.ops.ensure import ensured
from symc.ir.ops.kernel import results_of
from symc.ir.size_extremes import maximum
from symc.ir.types import TensorType
from symc.ir.value import Value, fresh_input
from symc.numpy_api.promotion import common_dtype
from symc.tensors import pytree as nest
from symc.tensors.convert import as_tensor, convert
from symc.tensors.deferred import Deferred
from symc.tensors.labels import Labels, dims_of
from symc.tensors.leaves import Leaf, register_leaf
from symc.tensors.public import API, public
from symc.tensors.pytree import Nest
from symc.tensors.sizes import named_size, size_of, user_size
from symc.tensors.tensor import Tensor
from symc.transforms.callbacks import call_traced, check_callback, said
from symc.transforms.taps import has_taps, without_taps

Carries = list[Tensor]
#: A carry that starts from a Python number takes the dtype that the body gives it; that may take some tries.
TRIES = 4
KEEPS = "a carry keeps its structure in every step"
CAPTURED = ("a Variable of unknown type is known inside of a body only as a carry, a row or an operand; "
            "or give it a dtype and a shape")


# --- scan -------------------------------------------------------------------------------------------------------------


@public()
def scan(step: Callable[[Any, Any], Any], init: Any, xs: Any = None, length: Any = None,
         reverse: bool = False, *, until: Callable[[Any, Any], Any] | None = None) -> tuple[Any, Any]:
    """A loop over the leading axis of ``xs``: ``carry, y = step(carry, x)``, from ``carry = init`` on.

    ``init``, ``xs``, ``carry``, ``x`` and ``y`` are nests; every array in ``xs`` has the same leading size, which is
    the number of steps. Without ``xs`` (x is then None) ``length`` gives it: an int, a size, or an integer that is
    data. ``reverse`` visits the rows from the last to the first; row t of the results still belongs to row t of ``xs``.
    ``until(carry, y)``, one bool, ends the loop after the first step for whose results it holds: the results have as
    many rows as there were steps, which are done twice, once to count them.
    Returns the last carry and the ys of all steps stacked on a new leading axis.
    A state in ``init`` given as ``sc.taps(history, offsets)`` is seen several steps back.
    ``step`` is called once (a few times if a Python number starts a carry), with symbolic values.
    Raises InputError, ShapeError or DTypeError when the new carry is not like the old one, with both lines.

    >>> x = sc.vector("x")
    >>> last, sums = sc.scan(lambda total, row: (total + row, total + row), 0.0, x)
    >>> sc.compile([last, sums])([1.0, 2.0, 3.0])
    [array(6.), array([1., 3., 6.])]
    """
    check_callback(step, "scan: step", "carry", "x")
    if until is not None:
        check_callback(until, "scan: until", "carry", "y")
        from symc.transforms.until import steps_until

        rows, structure = _tensors(xs, "xs")
        most = user_size(_length(rows, structure, length))
        xs, length = steps_until(step, init, nest.unflatten(structure, rows), most, reverse, until, while_count)
    if has_taps(init):
        step, init, histories = without_taps(step, init)
        final, ys = scan(step, init, xs, length, reverse)
        return histories(final), ys
    starts, structure = _tensors(init, "init")
    rows, xs_structure = _tensors(xs, "xs")
    n = _length(rows, xs_structure, length)
    found: dict[str, Nest] = {}
    xs_values = [_with_length(x, n) for x in rows]

    def trace(carry: Carries) -> Traced:
        leaves = [_leaf(c.value.type, "a carry of scan", dims_of(c)) for c in carry]
        elements = [_leaf(element_type(x.type), "a row of scan", dims_of(r)[1:])
                    for x, r in zip(xs_values, rows, strict=True)]
        out = call_traced(step, "scan: step", nest.unflatten(structure, _carried(leaves, carry)),
                    nest.unflatten(xs_structure, _wrap(elements)))
        if not isinstance(out, tuple | list) or len(out) != 2:
            raise InputError(f"scan: step must return a pair (carry, y), not {said(out)}",
                             help="return carry, None when there is nothing to stack")
        new = _match(structure, out[0], "scan", "the new carry")
        ys, found["ys"] = _tensors(out[1], "y")
        return Traced([*leaves, *elements], new, [_strong(y) for y in ys])

    carry, traced = _settle("scan", starts, structure, trace)
    v = make_scan([c.value for c in carry], xs_values, n, bool(reverse), traced.leaves,
                  [*_values(traced.new), *_values(traced.rest)])
    results = _wrap(results_of(v))
    return (nest.unflatten(structure, results[: len(carry)]), nest.unflatten(found["ys"], results[len(carry):]))


class Traced:
    """Results of a traced body: the leaves it was built on, the new carries, and what else it returned."""

    def __init__(self, leaves: list[Value], new: list[Tensor], rest: list[Tensor]):
        self.leaves, self.new, self.rest = leaves, new, rest


def _length(rows: Sequence[Tensor], structure: Nest, length: Any) -> Size:
    given = None if length is None else _size(length)
    if not rows:
        if given is None:
            raise InputError("scan: without xs the number of steps must be given",
                             help="length=100, or length=x.shape[0]")
        return given
    for x, path in zip(rows, structure.paths(), strict=True):
        if x.ndim == 0:
            raise ShapeError(f"scan: xs{path} is a scalar; it has no axis to go along", values=[x.describe()],
                             help="the number of steps is length=")
    n = rows[0].value.shape[0] if given is None else given
    for x, path in zip(rows, structure.paths(), strict=True):
        if known_equal(x.value.shape[0], n) is False:
            other = f"length is {n}" if given is not None else f"xs{structure.paths()[0]} has {n}"
            raise ShapeError(f"scan: xs{path} has {x.value.shape[0]} rows, {other}",
                             values=[r.describe() for r in rows])
    return n


def _size(length: Any) -> Size:
    size = named_size(length, "the length of a scan")
    if isinstance(size, int) and size < 0:
        raise InputError(f"scan: the length is {size}")
    return size


def _with_length(x: Tensor, n: Size) -> Value:
    return ensured(x.value, (n, *x.value.shape[1:]))


# --- carries ----------------------------------------------------------------------------------------------------------


def _settle(what: str, starts: Sequence[Tensor], structure: Nest,
            trace: Callable[[Carries], Traced]) -> tuple[Carries, Traced]:
    """Trace until the new carries have the types of the old ones; only what began as a Python number may change."""
    carry = list(starts)
    for _ in range(TRIES):
        traced = trace(carry)
        changed = False
        for k, (start, new) in enumerate(zip(starts, traced.new, strict=True)):
            if carry[k].weak and (new.dtype != carry[k].dtype or not new.weak):
                dtype = common_dtype([carry[k], new])
                changed |= dtype != carry[k].dtype
                carry[k] = Tensor(convert(start.value, dtype), weak=new.weak)
        if not changed:
            break
    paths = structure.paths()
    traced.new = [_like(n, c, f"{what}: the carry{p}", s) for n, c, p, s in
                  zip(traced.new, carry, paths, starts, strict=True)]
    return carry, traced


def _like(new: Tensor, old: Tensor, what: str, start: Tensor) -> Tensor:
    """``new`` in the type of ``old``."""
    have, want = new.value, old.value.type
    rows = [start.describe("starts as"), new.describe("becomes")]
    number = new.weak and (have.dtype.kind <= want.dtype.kind or want.dtype.kind == "c")
    if have.dtype != want.dtype and not number:
        raise DTypeError(f"{what} starts as {want.dtype} and becomes {have.dtype}", values=rows,
                         help=f"convert one of them: .astype({str(want.dtype)!r}) of the new carry, "
                              f"or .astype({str(have.dtype)!r}) of the first")
    if have.ndim != want.ndim or any(known_equal(a, b) is False for a, b in zip(have.shape, want.shape, strict=True)):
        shape = _shape(have.type)
        raise ShapeError(f"{what} starts with shape {_shape(want)} and becomes {_shape(have.type)}", values=rows,
                         help=f"a carry keeps its shape; start it with the shape it will have: sc.zeros({shape})")
    return Tensor(ensured(convert(have, want.dtype), want.shape))


def _shape(t: TensorType) -> str:
    return "(" + ", ".join(map(str, t.shape)) + ("," if t.ndim == 1 else "") + ")"


def _strong(t: Tensor) -> Tensor:
    """A tensor that does not promote like a Python number any more."""
    return Tensor(API["asarray"](t).value) if t.weak else t


def _leaf(t: TensorType, name: str, dims: Labels) -> Value:
    where = location.in_order(location.here())
    return register_leaf(fresh_input(t), Leaf(name, where[0] if where else None, "body", dims=dims))


def _carried(leaves: Sequence[Value], carry: Carries) -> list[Tensor]:
    """The carries inside a body; what began as a Python number promotes like one, until its dtype is settled."""
    return [Tensor(v, c.weak) for v, c in zip(leaves, carry, strict=True)]


def _wrap(values: Sequence[Value]) -> list[Tensor]:
    return [Tensor(v) for v in values]


def _values(tensors: Sequence[Tensor]) -> list[Value]:
    return [t.value for t in tensors]


def _tensors(tree: Any, what: str) -> tuple[list[Tensor], Nest]:
    leaves, structure = nest.flatten(tree)
    out = []
    for leaf, path in zip(leaves, structure.paths(), strict=True):
        try:
            out.append(as_tensor(leaf))
        except SymcError as e:
            unknown = isinstance(leaf, Deferred)
            raise InputError(f"{what}{path} is not an array: {said(leaf)}", help=CAPTURED if unknown else None) from e
    return out, structure


def _match(structure: Nest, tree: Any, what: str, name: str) -> list[Tensor]:
    try:
        leaves = nest.match(structure, tree, name)
    except InputError as e:
        raise InputError(f"{what}: {e.what}", values=e.values, help=KEEPS) from None
    return [_tensors(leaf, name + path)[0][0] if nest.flatten(leaf)[1].kind == "leaf" else _not_a_leaf(leaf, what, name)
            for leaf, path in zip(leaves, structure.paths(), strict=True)]


def _not_a_leaf(item: Any, what: str, name: str) -> Tensor:
    raise InputError(f"{what}: {name} has {said(item)} where an array was", help=KEEPS)


# --- while ------------------------------------------------------------------------------------------------------------


@public()
def while_loop(cond: Callable[[Any], Any], body: Callable[[Any], Any], init: Any, max_steps: Any = None) -> Any:
    """``while cond(carry): carry = body(carry)``, from ``carry = init`` on; returns the last carry.

    ``cond`` gives one bool. ``max_steps`` (an int or a size) ends the loop at the latest. A loop with it is cheaper to
    differentiate in reverse: every step is kept; without, some are kept and the others computed again.
    Raises InputError, ShapeError or DTypeError when the new carry is not like the old one, with both lines.

    >>> x = sc.scalar("x")
    >>> sc.compile(sc.while_loop(lambda v: v < 100, lambda v: 2 * v, x))(3.0)
    array(192.)
    """
    return while_count(cond, body, init, max_steps)[0]


def while_count(cond: Callable[[Any], Any], body: Callable[[Any], Any], init: Any,
                max_steps: Any = None) -> tuple[Any, Tensor]:
    """``while_loop``, with the number of steps that were taken."""
    check_callback(cond, "while_loop: cond", "carry")
    check_callback(body, "while_loop: body", "carry")
    starts, structure = _tensors(init, "init")
    limit = None if max_steps is None else _size(max_steps)

    def trace(carry: Carries) -> Traced:
        leaves = [_leaf(c.value.type, "a carry of while_loop", dims_of(c)) for c in carry]
        state = nest.unflatten(structure, _carried(leaves, carry))
        go = _truth(call_traced(cond, "while_loop: cond", state), "while_loop: cond")
        new = _match(structure, call_traced(body, "while_loop: body", state), "while_loop", "the new carry")
        return Traced(leaves, new, [go])

    carry, traced = _settle("while_loop", starts, structure, trace)
    v = make_while(_values(carry), limit, traced.leaves, traced.rest[0].value, _values(traced.new))
    results = _wrap(results_of(v))
    return nest.unflatten(structure, results[:-1]), results[-1]


def _truth(item: Any, what: str) -> Tensor:
    """One bool."""
    t = as_tensor(item)
    if t.ndim or t.dtype.kind not in "biuf":
        raise ShapeError(f"{what} must give one truth value, not {t.dtype} of shape {_shape(t.value.type)}",
                         values=[t.describe()], help="sc.any(...) or sc.all(...) makes one of many")
    return t if t.dtype == np.dtype(bool) else API["not_equal"](t, 0)


@public()
def fori_loop(lower: Any, upper: Any, body: Callable[[Any, Any], Any], init: Any) -> Any:
    """``for i in range(lower, upper): carry = body(i, carry)``, from ``carry = init`` on; returns the last carry.

    Bounds that are ints or sizes make a ``scan``; bounds that are computed make a ``while_loop``.

    >>> n, x = sc.scalar("n", "int64"), sc.scalar("x")
    >>> sc.compile(sc.fori_loop(0, n, lambda i, power: power * x, 1.0), [n, x])(10, 2.0)
    array(1024.)
    """
    check_callback(body, "fori_loop: body", "i", "carry")
    low, high = size_of(lower), size_of(upper)
    if low is not None and high is not None:
        index = API["arange"](user_size(maximum(high - low, 0)))
        first = as_tensor(lower)
        return scan(lambda carry, i: (body(i + first, carry), None), init, index)[0]
    start, end = API["asarray"](lower), API["asarray"](upper)
    wide = common_dtype([start, end])
    if wide.kind not in "iu":
        raise DTypeError(f"fori_loop: the bounds must be integers, not {wide}",
                         values=[start.describe(), end.describe()])
    state = (Tensor(convert(start.value, wide)), init)
    return while_loop(lambda s: s[0] < end, lambda s: (s[0] + 1, body(s[0], s[1])), state)[1]


# --- cond -------------------------------------------------------------------------------------------------------------


@public()
def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], *operands: Any) -> Any:
    """``true_fn(*operands) if pred else false_fn(*operands)``: only one of them runs.

    ``pred`` is one bool. Both functions give results of one structure and shape; dtypes are promoted to a common one.
    What a function builds is computed only if it is chosen; what was built outside is computed anyway.
    ``sc.where`` chooses element by element, and computes both sides.

    >>> x = sc.scalar("x")
    >>> sc.compile(sc.cond(x < 0, lambda: -x, lambda: sc.sqrt(x)))(9.0)
    array(3.)
    """
    return _choose("cond", _truth(pred, "cond: pred").value, [true_fn, false_fn], operands, ["true_fn", "false_fn"])


@public()
def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """``branches[index](*operands)``: only that function runs. An index outside is moved to the first or the last.

    All functions give results of one structure and shape; dtypes are promoted to a common one.

    >>> k, x = sc.scalar("k", "int64"), sc.scalar("x")
    >>> sc.compile(sc.switch(k, [lambda v: v, lambda v: v**2, lambda v: v**3], x), [k, x])(2, 5.0)
    array(125.)
    """
    which = as_tensor(index)
    if which.ndim or which.dtype.kind not in "iu":
        raise DTypeError("switch: the index must be one integer", values=[which.describe()],
                         help="sc.cond(pred, ...) chooses by a bool")
    fns = list(branches)
    if not fns:
        raise InputError("switch: there are no branches")
    if which.dtype == np.uint64:  # whose largest numbers are negative as int64
        which = API["minimum"](which, len(fns) - 1)
    return _choose("switch", convert(which.value, COUNT.dtype), fns, operands, [f"branch {k}" for k in range(len(fns))])


def _choose(what: str, which: Value, fns: Sequence[Callable[..., Any]], operands: Sequence[Any],
            names: Sequence[str]) -> Any:
    traced: list[tuple[list[Tensor], set[Value]]] = []
    structure: Nest | None = None
    given = [f"operand {k}" for k in range(len(operands))]
    for fn, name in zip(fns, names, strict=True):
        check_callback(fn, f"{what}: {name}", *given)
        with built() as made:
            out = call_traced(fn, f"{what}: {name}", *operands)
            leaves, own = _tensors(out, f"{what}: the result of {name}")
        if structure is None:
            structure = own
        elif str(own) != str(structure):
            raise InputError(f"{what}: {names[0]} gives {structure}, {name} gives {own}",
                             help="all branches must return the same structure")
        traced.append((leaves, made))
    assert structure is not None
    branches: list[tuple[list[Value], set[Value]]] = []
    for k, (leaves, made) in enumerate(traced):
        with built() as more:
            fitted = [_common(what, t, [other[j] for other, _ in traced], names, k, path).value
                      for j, (t, path) in enumerate(zip(leaves, structure.paths(), strict=True))]
        branches.append((fitted, made | more))
    v = make_cond(which, branches)
    return nest.unflatten(structure, _wrap(results_of(v)) if structure.count else [])


def _common(what: str, t: Tensor, every: Sequence[Tensor], names: Sequence[str], k: int, path: str) -> Tensor:
    """Result ``t`` of branch k in the dtype that all branches' results promote to."""
    first = every[0]
    if t.ndim != first.ndim or any(known_equal(a, b) is False
                                   for a, b in zip(t.value.shape, first.value.shape, strict=True)):
        raise ShapeError(f"{what}: result{path} of {names[0]} has shape {_shape(first.value.type)}, of {names[k]} "
                         f"{_shape(t.value.type)}", values=[first.describe(names[0]), t.describe(names[k])],
                         help="all branches must return the same shapes; sc.broadcast_to makes them equal")
    return Tensor(ensured(convert(t.value, common_dtype(every)), first.value.shape))
