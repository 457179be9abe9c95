"""From what a user gives to ``compile`` (outputs, inputs, updates, givens) to a closed IR function; nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from symc.driver.built import Built, bound_guards, least_guards
from symc.driver.labelled import of_outputs
from symc.driver.signature import Slot
from symc.errors import InputError, SymcError, did_you_mean
from symc.ir import location
from symc.ir.dim import Measured, in_order
from symc.ir.function import Function, Input, close_function
from symc.ir.garbage import no_collections
from symc.ir.location import Loc
from symc.ir.record import replace
from symc.ir.traverse import Substitution, free_inputs, oldest_first
from symc.ir.value import Value, first_line
from symc.tensors.convert import as_tensor
from symc.tensors.draws import tell_of_standing
from symc.tensors.leaves import leaf_of, leaves_of_size, parts_of
from symc.tensors.pytree import Nest, flatten, unflatten
from symc.tensors.state import Cell, SharedVariable
from symc.tensors.tensor import Tensor
from symc.transforms.substitution import fitted, pairs, substituted


@no_collections()
def build(
    outputs: Any, inputs: Any, updates: Any, givens: Any, donate: Any, name: str, loc: Loc, sizes: Sequence[Tensor] = ()
) -> Built:
    """Check and close. ``sizes``: inputs that are found though only their sizes may be used. Raises SymcErrors that
    carry the user's lines."""
    with location.at((loc,)):
        leaves, nest = flatten(outputs)
        roots = [output_of(item, path) for item, path in zip(leaves, nest.paths(), strict=True)]
        changes = _updates(updates)
        if not roots and not changes:
            raise InputError("there is nothing to compile: no outputs and no updates", where=[loc],
                             help="give values to compute; a function without `return` gives None")
        cells = [cell for cell, _ in changes]
        roots = substituted([*roots, *[v for _, v in changes]], givens)
        free = free_leaves([*roots, *[s.value for s in sizes]])
        _check_escaped(free)
        targets = [variable.value for variable in _targets(updates)]
        while True:
            slots, args = _arguments(inputs, [v for v in free if leaf_of(v).role == "arg"])
            _check_complete(args, free, loc)
            states = list(dict.fromkeys([*[v for v in free if leaf_of(v).role == "state"], *targets]))
            closed, changed = _close(name, args, states, roots, len(roots) - len(changes), cells)
            guards, unknown = bound_guards(closed)
            if not unknown:
                break
            replaced = {t.value for t, _ in pairs(givens, "givens")}
            size, v = min(unknown.items(), key=lambda item: in_order(unknown).index(item[0]))
            leaf = _leaf_of_size(size, replaced, inputs is not None, closed.locations(v) if v is not None else [])
            free = oldest_first([*free, leaf])
        closed = replace(closed, guards=(*guards, *least_guards(closed)))
        labels = of_outputs(leaves, roots[: len(leaves)], args)
    shared = tuple(leaf_of(v).shared for v in states)
    tell_of_standing(name, shared, cells)
    return Built(closed, nest, slots, shared, _donated(donate, args), (*args, *states), changed, labels)


# --- outputs, updates, givens -----------------------------------------------------------------------------------------


def output_of(item: Any, path: str) -> Value:
    """The value of one output. Raises InputError for what is none."""
    if isinstance(item, Tensor):
        return item.value
    if isinstance(item, Value):
        return item
    try:
        return as_tensor(item).value
    except SymcError:
        raise InputError(
            f"output{path} is not a value: {type(item).__name__} {getattr(item, '__name__', repr(item)):.40}".rstrip(),
            where=location.in_order(location.here()),
            help="sc.jit compiles a function; compile takes what it returns: sc.compile(fn(x), [x])" if callable(item)
            else "outputs are tensors, numbers, arrays, or tuples, lists, dicts and dataclasses of them",
        ) from None


def _targets(updates: Any) -> list[SharedVariable]:
    return [k for k, _ in pairs(updates, "updates")]


def _updates(updates: Any) -> list[tuple[Cell, Value]]:
    """New values of the states, in the states' types."""
    out: list[tuple[Cell, Value]] = []
    known: set[int] = set()
    for target, item in pairs(updates, "updates"):
        if not isinstance(target, SharedVariable):
            raise InputError(
                f"updates: {target!r} is not a shared variable",
                where=location.in_order(location.here()),
                help="only state can be updated; make it with sc.shared(value, name)",
            )
        if id(target.cell) in known:
            raise InputError(f"updates: {target.name or 'a variable'} is updated twice", values=[target.describe()])
        known.add(id(target.cell))
        out.append((target.cell, fitted(as_tensor(item), target, "update")))
    return out


# --- inputs -----------------------------------------------------------------------------------------------------------


def free_leaves(roots: Sequence[Value]) -> list[Value]:
    """The free leaves, in order of creation."""
    return oldest_first(free_inputs(roots))


def _leaf_of_size(size: str, replaced: set[Value], listed: bool, where: list[Loc]) -> Value:
    """The leaf of which only ``size`` is used: the one input (unless inputs are ``listed``) or state that has it.

    Of several that look the same to a user, as when a notebook's cell runs again, the newest.
    """
    if isinstance(size, Measured):
        raise InputError("a size that is data has a number in calls of a compiled function alone",
                         where=location.in_order(size.where), help="sc.compile what has it")
    roles = ("state",) if listed else ("arg", "state")
    found = [v for v in leaves_of_size(size) if leaf_of(v).role in roles and v not in replaced]
    alike = {(leaf_of(v).role, leaf_of(v).name, v.type): v for v in found}
    if len(alike) == 1:
        return found[-1]
    several = f": {' and '.join(leaf_of(v).name or 'a value without a name' for v in alike.values())} have it"
    raise InputError(
        f"the size {size} is not known from any input{several if alike else ''}",
        values=[Tensor(v).describe() for v in alike.values()],
        where=where,
        help=f"list an input that has {size} in its shape: compile(..., inputs=[...])",
    )


def _arguments(inputs: Any, found: list[Value]) -> tuple[tuple[Slot, ...], list[Value]]:
    """The arguments of a call, and the leaf of every array in them."""
    if inputs is None:
        return _found(found)
    if isinstance(inputs, Tensor):
        inputs = [inputs]
    if not isinstance(inputs, Iterable) or isinstance(inputs, str):
        raise InputError(
            f"inputs must be a list of symbolic values, or a dict of them by name, not {type(inputs).__name__}",
            where=location.in_order(location.here()),
        )
    items = list(inputs.items()) if isinstance(inputs, Mapping) else [("", i) for i in inputs]
    slots: list[Slot] = []
    args: list[Value] = []
    for k, (name, item) in enumerate(items):
        if not isinstance(name, str):
            raise InputError(f"inputs: the name of an argument must be a string, not {name!r}",
                             where=location.in_order(location.here()))
        leaves, nest = flatten(item)
        for leaf, path in zip(leaves, nest.paths(), strict=True):
            args.append(_argument(leaf, f"input {k}{path}", args))
        if not name:
            name = _common_name(args[len(args) - len(leaves):], nest)
        defaults = [leaf_of(v).default for v in args[len(args) - len(leaves):]]
        slots.append(Slot(name, nest, unflatten(nest, defaults) if all(d is not None for d in defaults) else None))
    return tuple(slots), args


def _found(found: Sequence[Value]) -> tuple[tuple[Slot, ...], list[Value]]:
    """The arguments of a call, in order of creation; an input of several arrays is one."""
    slots: list[Slot] = []
    args: list[Value] = []
    for v in found:
        leaf = leaf_of(v)
        if leaf.whole is None:
            slots.append(Slot(leaf.name, default=leaf.default))
            args.append(v)
        elif v not in args:
            slots.append(Slot(leaf.whole.name, leaf.whole.nest))
            args += parts_of(leaf.whole, found)
    return tuple(slots), args


def _common_name(args: Sequence[Value], nest: Nest) -> str:
    """The name of an argument whose arrays are called by it and how they are reached."""
    named = {leaf_of(v).name.removesuffix(path) if leaf_of(v).name.endswith(path) else ""
             for v, path in zip(args, nest.paths(), strict=True)}
    return named.pop() if len(named) == 1 else ""


def _argument(item: Any, what: str, before: Sequence[Value]) -> Value:
    where = location.in_order(location.here())
    if not isinstance(item, Tensor):
        raise InputError(
            f"{what} is not a symbolic value: {type(item).__name__}",
            where=where,
            help="inputs are values made by sc.input, sc.scalar, sc.vector, sc.matrix or sc.Variable",
        )
    if isinstance(item, SharedVariable):
        raise InputError(
            f"{what} is a shared variable",
            values=[item.describe()],
            where=where,
            help="state is not given in a call; use w.set_value(array), or givens={w: x} to replace it by an input",
        )
    if item.value.op.name != "input":
        raise InputError(
            f"{what} is computed, not an input",
            values=[item.describe("value")],
            where=where,
            help="make a new input and replace the value by it: givens={value: new_input}",
        )
    if item.value in before:
        raise InputError(f"{what} is listed twice", values=[item.describe()], where=where)
    return item.value


def _check_escaped(free: Sequence[Value]) -> None:
    for v in free:
        if leaf_of(v).role == "body":
            raise InputError(
                f"{leaf_of(v).name} is used outside of the loop",
                values=[Tensor(v).describe()],
                help="a value of a loop's body exists in its steps only; return it from the body",
            )


def _check_complete(args: Sequence[Value], free: Sequence[Value], loc: Loc) -> None:
    absent = [v for v in free if v not in args and leaf_of(v).role == "arg"]
    if absent:
        named = [leaf_of(v).name for v in args]
        near = did_you_mean(leaf_of(absent[0]).name, [n for n in named if n])
        raise InputError(
            f"the outputs depend on {leaf_of(absent[0]).name or 'an input'}, which is not among the inputs",
            values=[Tensor(v).describe() for v in absent],
            where=[loc],
            help=near + " or add it to inputs, or give it a value in givens"
            if near.startswith("did")
            else "add it to inputs, or give it a value in givens",
        )


def _donated(donate: Any, args: Sequence[Value]) -> frozenset[int]:
    """Numbers of the arguments that a call may overwrite."""
    items = flatten(list(donate) if isinstance(donate, tuple | list | set) else [donate])[0]
    out = set()
    for item in items:
        if not isinstance(item, Tensor) or item.value not in args:
            raise InputError(
                "donate: only inputs of the function can be donated",
                values=[item.describe()] if isinstance(item, Tensor) else [(repr(item), None, None)],
            )
        out.add(args.index(item.value))
    return frozenset(out)


# --- closing ----------------------------------------------------------------------------------------------------------


def _close(
    name: str,
    args: Sequence[Value],
    states: Sequence[Value],
    roots: Sequence[Value],
    outputs: int,
    cells: Sequence[Cell],
) -> tuple[Function, Substitution]:
    used: set[str] = set()
    interface = []
    for k, v in enumerate([*args, *states]):
        leaf = leaf_of(v)
        label = leaf.name or (f"arg{k}" if leaf.role == "arg" else f"state{k - len(args)}")
        while label in used:
            label += "_"
        used.add(label)
        interface.append((v, Input(label, v.type, leaf.role, v.type, leaf.loc or first_line(v), leaf.dims)))
    places = {id(leaf_of(v).shared): len(args) + k for k, v in enumerate(states)}
    updates = [(places[id(cell)], v) for cell, v in zip(cells, roots[outputs:], strict=True)]
    return close_function(name, interface, roots[:outputs], updates)
