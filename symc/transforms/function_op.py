"""``sc.function_op``: a function of symbolic values as one op of the graph, with a derivative of its own if need be.

A call is a named block: a closed region of what the function built. Unless it is opaque, the optimizer takes it apart
at once. What the function does not compute itself (shared variables, values made before) is an operand of the block.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from hashlib import blake2b
from types import CellType, CodeType
from typing import Any

import numpy as np

from symc.errors import GradientError, InputError, SymcError
from symc.grad import connected
from symc.grad.one_op import varies
from symc.ir import location
from symc.ir.bodies import branch_captures, built, close
from symc.ir.dtypes import dtype_code
from symc.ir.ops.call import Rule, Site, call, rules
from symc.ir.ops.kernel import results_of
from symc.ir.record import dataclass, field
from symc.ir.traverse import free_inputs
from symc.ir.types import TensorType
from symc.ir.value import Value
from symc.tensors.callsite import caller, user_code
from symc.tensors.convert import as_tensor
from symc.tensors.public import API, located
from symc.tensors.pytree import Nest, flatten, match, unflatten
from symc.tensors.tensor import Tensor
from symc.transforms.checkpoint import leaf_in_body
from symc.transforms.custom_derivative import both_directions, dense, fitted

Values = Sequence[Value | None]


def function_op(fn: Callable[..., Any] | None = None, *, vjp: Callable[..., Any] | None = None,
                jvp: Callable[..., Any] | None = None, opaque: bool = False,
                name: str | None = None) -> Callable[..., Any]:  # fmt: skip
    """Make a function of tensors one op: ``@sc.function_op`` or ``@sc.function_op(vjp=...)``.

    * ``vjp(g, *arguments)`` replaces its derivative: g in the structure of the result, and as many cotangents as there
      are positional arguments, each in the structure of its argument; None is zero. Calling the function itself in
      there, or repeating its formulas, costs nothing: equal computations are one.
    * ``jvp(tangents, *arguments)``: the same forwards. Tangents have the structure of the arguments, and are zero where
      nothing moves. The one of the two that is not given is the other, transposed.
    * ``opaque``: the optimizer works inside the block and outside of it, not across its border, and dumps show it as
      one op until its parts become kernels. Its derivative is a block too, which computes again what it needs.

    Tensors, arrays and numbers among the arguments are operands; anything else, and with a derivative of its own every
    keyword argument, is passed as it is. A function with a derivative of its own uses nothing from outside that has
    one. ``vmap`` works, and batches the derivative.

    >>> @sc.function_op(vjp=lambda g, t: g * sc.sigmoid(t))
    ... def soft(t):
    ...     return sc.log(1 + sc.exp(t))
    >>> x = sc.vector("x")
    >>> sc.compile(sc.grad(sc.sum(soft(x)), x))([0.0, 1000.0])
    array([0.5, 1. ])
    """
    if fn is None:
        return functools.partial(function_op, vjp=vjp, jvp=jvp, opaque=opaque, name=name)
    if isinstance(fn, Tensor) or not callable(fn):
        raise InputError(f"function_op takes a function, not {type(fn).__name__}", where=[caller()])
    block = _Block(fn, name or str(getattr(fn, "__name__", "function")), vjp, jvp, bool(opaque))
    return functools.update_wrapper(located(block.call), fn)


API["function_op"] = function_op


def _digest(*functions: Any) -> str:
    """Digest of what functions do: their code, constants and defaults, and what they enclose."""
    found, pending, seen = blake2b(digest_size=6), list(functions), set[int]()
    while pending:
        item = pending.pop()
        code = getattr(item, "__code__", item)
        if id(code) in seen:
            continue
        if isinstance(code, CodeType):
            seen.add(id(code))
            cells = getattr(item, "__closure__", None) or ()
            pending += [*code.co_consts, *[_content(c) for c in cells], code.co_names,
                        getattr(item, "__defaults__", None)]
            item = code.co_code
        elif isinstance(item, tuple):
            pending += item
            item = len(item)
        elif isinstance(item, np.ndarray):
            item = dtype_code(item.dtype), item.shape, item.tobytes()
        found.update(repr(item).encode())  # with an address, where it has no other: unknown in other processes
    return found.hexdigest()


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not yet assigned
        return None


@dataclass(eq=False)
class _Block:
    fn: Callable[..., Any]
    name: str
    vjp: Callable[..., Any] | None
    jvp: Callable[..., Any] | None
    opaque: bool
    keys: dict[Any, str] = field(default_factory=dict)  # what distinguishes calls -> the name of their rule

    @property
    def own(self) -> bool:
        """True if it has a derivative of its own."""
        return self.vjp is not None or self.jvp is not None

    def call(self, *args: Any, **kwargs: Any) -> Any:
        given, structure = flatten((args, kwargs))
        picked = [k for k, x in enumerate(given) if _is_data(x)]
        if self.own:
            positional = structure.children[0].count
            self._no_keyword(given[positional:])
            picked = [k for k in picked if k < positional]
        outside = [as_tensor(given[k]) for k in picked]
        inputs = [leaf_in_body(t) for t in outside]
        kept = [None if k in picked else x for k, x in enumerate(given)]
        frame = _Frame(structure, kept, picked, [t.weak for t in outside])
        own_args, own_kwargs = frame.filled([Tensor(v, t.weak) for v, t in zip(inputs, outside, strict=True)])
        with built() as made, user_code():
            found = self.fn(*own_args, **own_kwargs)
        items, out = flatten(found)
        values = [self._result(x, path) for x, path in zip(items, out.paths(), strict=True)]
        if not values:
            raise InputError(f"{self.name} returns no tensors")
        captured = [v for v in branch_captures(values, made) if v not in set(inputs)]
        rule = self._rule(frame, out, [v for v in captured if _matters(values, v)]) if self.own else ""
        body = close(inputs, captured, values)
        v = call(*[t.value for t in outside], *captured, name=self.name, rule=rule, opaque=self.opaque, batch=(),
                 regions=[body.region])  # fmt: skip
        location.note_inside(v, body.notes)
        return unflatten(out, [Tensor(r) for r in results_of(v)])

    def _no_keyword(self, items: Sequence[Any]) -> None:
        """With a derivative of its own, keyword arguments are not symbolic."""
        for x in items:
            if isinstance(x, Tensor):
                raise InputError(f"{self.name}: a keyword argument is a symbolic value", values=[x.describe()],
                                 help="give it by position: vjp= and jvp= say what its derivative is")  # fmt: skip

    def _result(self, x: Any, path: str) -> Value:
        try:
            t = as_tensor(x)
        except SymcError:
            raise InputError(f"{self.name}: result{path} is not a tensor but {type(x).__name__} {x!r:.40}".rstrip(),
                             where=location.in_order(location.here())) from None  # fmt: skip
        return (API["asarray"](t) if t.weak else t).value

    # -- derivatives of its own

    def _rule(self, frame: _Frame, out: Nest, varying: Sequence[Value]) -> str:
        """The name under which the derivative of such calls is known."""
        if varying:
            raise InputError(
                f"{self.name} has a derivative of its own, and uses a value from outside that has one too",
                values=[Tensor(v).describe("value") for v in varying],
                help="make it an argument, or use sc.stop_gradient(value)",
            )
        key: Any = (frame.key(), out)
        try:
            known = self.keys.get(key)
        except TypeError:  # an argument that cannot be hashed: every call has a rule of its own
            known, key = None, (id(frame), len(self.keys))
        if known is None:
            # other processes may have others of its name
            base = f"{self.name}:{_digest(self.fn, self.vjp, self.jvp, repr(key))}"
            known, k = base, 2
            while known in rules:
                known, k = f"{base}_{k}", k + 1
            ahead, back = both_directions(
                self._forward(frame, out) if self.jvp is not None else None,
                self._reverse(frame, out) if self.vjp is not None else None,
            )
            rules[known] = Rule(ahead, back)
            self.keys[key] = known
        return known

    def _forward(self, frame: _Frame, out: Nest) -> Callable[[Values, Any], list[Value | None]]:
        def run(tangents: Values, site: Site) -> list[Value | None]:
            assert self.jvp is not None
            args, kwargs = frame.arguments(site)
            moves = frame.nest_of(dense(tangents, [o.type for o in site.operands]))
            with user_code():
                found = self.jvp(moves, *args, **kwargs)
            items = [None] * out.count if found is None else match(out, found, f"{self.name}: what jvp gives")
            return [_fit(x, t, self.name) for x, t in zip(items, site.types, strict=True)]

        return run

    def _reverse(self, frame: _Frame, out: Nest) -> Callable[[Values, Any], list[Value | None]]:
        def run(cotangents: Values, site: Site) -> list[Value | None]:
            assert self.vjp is not None
            args, kwargs = frame.arguments(site)
            g = unflatten(out, dense(cotangents, site.types))
            with user_code():
                found = self.vjp(g, *args, **kwargs)
            items = self._cotangents(found, frame)
            fitting = [_fit(x, o.type, self.name) for x, o in zip(items, site.operands, strict=False)]
            return fitting + [None] * (len(site.operands) - len(fitting))  # what it uses from outside has none

        return run

    def _cotangents(self, found: Any, frame: _Frame) -> list[Any]:
        """One item for every operand among the arguments."""
        positional = frame.structure.children[0]
        count = len(positional.children)
        alone = count == 1 and not _wrapped(found, positional.children[0])
        parts = [found] if alone or not isinstance(found, tuple | list) else list(found)
        if len(parts) != count:
            raise GradientError(f"{self.name}: vjp gives {len(parts)} cotangents for {count} arguments")
        leaves: list[Any] = []
        for k, (part, child) in enumerate(zip(parts, positional.children, strict=True)):
            what = f"{self.name}: cotangent {k}"
            leaves += [None] * child.count if part is None else match(child, part, what)
        return [leaves[k] for k in frame.picked]


@dataclass(frozen=True, eq=False)
class _Frame:
    """The arguments of a call: their structure, what is not an operand, and which leaves are."""

    structure: Nest
    given: Sequence[Any]
    picked: Sequence[int]
    weak: Sequence[bool]

    def key(self) -> Any:
        """Key that is equal for two calls with one rule."""
        kept = set(self.picked)
        fixed = tuple((k, type(x), x) for k, x in enumerate(self.given) if k not in kept)
        return self.structure, tuple(self.picked), tuple(self.weak), fixed

    def filled(self, operands: Sequence[Any]) -> Any:
        """Positional and keyword arguments with other operands."""
        leaves = list(self.given)
        for k, x in zip(self.picked, operands, strict=True):
            leaves[k] = x
        return unflatten(self.structure, leaves)

    def arguments(self, site: Site) -> Any:
        return self.filled([Tensor(v, w) for v, w in zip(site.operands, self.weak, strict=False)])

    def nest_of(self, items: Sequence[Any]) -> Any:
        """Items, one an operand, in the structure of the positional arguments; None where there is no operand."""
        leaves: list[Any] = [None] * len(self.given)
        for k, x in zip(self.picked, items, strict=False):
            leaves[k] = x
        return unflatten(self.structure, leaves)[0]


def _wrapped(found: Any, argument: Nest) -> bool:
    """The cotangent of the only argument may come alone, or in a tuple of one."""
    if argument.kind not in ("tuple", "list"):
        return type(found) is tuple
    return isinstance(found, tuple) and len(found) == 1 and isinstance(found[0], tuple | list)


def _matters(results: Sequence[Value], captured: Value) -> bool:
    """True if results have a derivative by a value from outside, and that by an input or a state."""
    leaves = [v for v in free_inputs([captured]) if varies(v.type)]
    return varies(captured.type) and connected(results, [captured])[0] and any(connected([captured], leaves))


def _fit(x: Any, t: TensorType, name: str) -> Value | None:
    return None if x is None or not varies(t) else fitted(x, t, name)


def _is_data(x: Any) -> bool:
    return isinstance(x, Tensor | int | float | complex | np.ndarray | np.generic) and not isinstance(x, bool)


