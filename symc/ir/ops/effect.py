"""Ops with an effect: identities of their first operand that print it, check it or stop at it on the way.

They are values like any other, so an effect takes place where and when its result is needed. Trait "effect" keeps it:
no rule looks through it, nothing is folded or fused across it, and what a rule would drop is tied to a result by
``after``. Attribute `serial` tells two effects on equal operands apart, and is the order of the program; `line` is the
user's line, `batch` the number of leading axes that count entries (after ``vmap``).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from symc.errors import AssertError, InternalError
from symc.ir.dim import Size
from symc.ir.facts import Facts
from symc.ir.op import Custom, Extern, Op, register
from symc.ir.ops.shape import broadcast
from symc.ir.record import dataclass
from symc.ir.traverse import postorder
from symc.ir.types import TensorType
from symc.ir.value import Region, Value

#: How many elements that fail a check are shown.
SHOWN = 5


# --- what effects do, for whoever wants them to do something else -----------------------------------------------------


def _print(text: str) -> None:
    print(text, flush=True)


def _stop(arrays: Mapping[str, np.ndarray], line: str) -> None:
    """Open pdb where every array is a variable; ``c`` goes on with the program."""
    import pdb

    scope: dict[str, Any] = {**arrays, "np": np, "__name__": "symc.debug", "__stop__": pdb.Pdb().set_trace}
    exec(compile("__stop__()\npass\n", f"<breakpoint at {line}>", "exec"), scope)


@dataclass
class Hooks:
    """Hooks for what happens at run time: ``print(text)`` gets a finished line, ``breakpoint(arrays, line)`` arrays by
    name."""

    print: Callable[[str], None] = _print
    breakpoint: Callable[[Mapping[str, np.ndarray], str], None] = _stop


hooks = Hooks()
_quiet: ContextVar[bool] = ContextVar("symc_quiet", default=False)


@contextmanager
def quiet() -> Iterator[None]:
    """Nothing is printed and nothing stops meanwhile: for a run that only checks another one. Assertions hold."""
    token = _quiet.set(True)
    try:
        yield
    finally:
        _quiet.reset(token)


def is_quiet() -> bool:
    """True if this run only checks another one."""
    return _quiet.get()


_listener: ContextVar[Callable[[list[np.ndarray]], None] | None] = ContextVar("symc_listener", default=None)


@contextmanager
def tapped(listener: Callable[[list[np.ndarray]], None]) -> Iterator[None]:
    """Gives the operands of each ``tap`` that runs inside to the listener, at the moment when they have been computed
    and for the length of its call."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


# --- the order of effects ---------------------------------------------------------------------------------------------

_of_region: weakref.WeakKeyDictionary[Region, float] = weakref.WeakKeyDictionary()
PURE = float("inf")


def moment(v: Value) -> float:
    """The serial of an effect; of a loop or branch that holds effects, that of the first; PURE without any."""
    if "effect" in v.op.traits:
        return v.attrs.get("serial", -1)
    return min(map(_region_moment, v.regions)) if v.regions else PURE


def _region_moment(region: Region) -> float:
    found = _of_region.get(region)
    if found is None:
        found = _of_region[region] = min(map(moment, postorder(region.results)), default=PURE)
    return found


def has_effect(v: Value) -> bool:
    """True if computing ``v`` from its operands does anything that can be seen."""
    return "effect" in v.op.traits or bool(v.regions) and moment(v) != PURE


def program_order(roots: Sequence[Value], stop: Callable[[Value], bool] | None = None) -> list[Value]:
    """``postorder``, in which effects stand in the order of the program as far as dependencies allow."""
    values = postorder(roots, stop)
    times = {v: moment(v) for v in values if v.operands}
    effects = [v for v, t in times.items() if t != PURE]
    if len(effects) < 2:
        return values
    return postorder([*sorted(effects, key=times.__getitem__), *roots], stop)


def keep(results: Sequence[Value], effects: Sequence[Value]) -> list[Value]:
    """``results`` with every one of ``effects`` among what they are made of."""
    if not effects or not results:
        return list(results)
    reached = set(postorder(results))
    lost = [e for e in dict.fromkeys(effects) if e not in reached and has_effect(e)]
    inner = set(postorder(o for e in lost for o in e.operands))
    ties = [t for e in lost if e not in inner for t in ([e] if isinstance(e.type, TensorType) else [e[0]])]
    return [after(results[0], *ties), *results[1:]] if ties else list(results)


# --- the records ------------------------------------------------------------------------------------------------------


#: The derivative of an identity of the first operand, in which the others have no part.
IDENTITY = Custom(lambda tangents, v: tangents[0], lambda g, v: (g, *[None] * (len(v.operands) - 1)))


def _identity(name: str, doc: str, reference: Callable[..., np.ndarray], samples: Any = None, least: int = 1,
              unnamed: int = 0, traits: frozenset[str] = frozenset({"effect", "barrier", "python"})) -> Op:
    def infer(*types: TensorType, format: str = "", message: str = "", names: tuple[str, ...] = (), line: str = "",
              batch: int = 0, serial: int = -1) -> TensorType:
        if len(types) < least or not 0 <= batch <= types[0].ndim:
            raise InternalError(f"{name} takes {least} operands at least, of {batch} axes that count entries")
        if names and len(names) != len(types) - unnamed:
            raise InternalError(f"{name}: {len(names)} names for {len(types)} operands")
        return types[0]

    def batch(v: Value, operands: Sequence[Value], flags: Sequence[bool], n: Size) -> Value:
        spread = [x if f else broadcast(x, axes=tuple(range(1, x.ndim + 1)), shape=(n, *x.shape))
                  for x, f in zip(operands, flags, strict=True)]  # fmt: skip
        attrs = {**v.attrs, "batch": v.attrs["batch"] + 1} if "batch" in v.attrs else v.attrs
        return v.op(*spread, **attrs)

    return register(Op(name, infer, reference, IDENTITY, Extern(name), traits, samples, doc,
                       Facts(batch=batch, rounding="none", same=True)))


def _entries(batch: int, arrays: Sequence[np.ndarray]) -> Iterator[tuple[str, list[Any]]]:
    """The arrays of every entry of a batch, with what to write behind the line; 0-d ones as scalars."""
    for place in np.ndindex(*arrays[0].shape[:batch]):
        yield (f" {list(place)}" if batch else ""), [np.asarray(a)[place][()] for a in arrays]


def _named(names: Sequence[str], arrays: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
    """The arrays without a name, and those with one."""
    pairs = list(zip(names, arrays, strict=True))
    return [a for n, a in pairs if not n], {n: a for n, a in pairs if n}


def _print_reference(x, *others, format, names, line, batch, serial):
    if not _quiet.get():
        for entry, arrays in _entries(batch, (x, *others)):
            unnamed, named = _named(names, arrays[1:])
            hooks.print(f"{line}{entry}: {format.format(arrays[0], *unnamed, **named)}")
    return np.array(x)


def _assert_reference(x, condition, *others, message, names, line, batch, serial):
    if not np.all(condition):
        for entry, (a, holds, *more) in _entries(batch, (x, condition, *others)):
            if not np.all(holds):
                rows = _failing(a, holds) + [(f"{n} = {_brief(v)}", None, "") for n, v in zip(names, more, strict=True)]
                raise AssertError(f"assert_{entry}: {message or 'the condition does not hold'}", values=rows)
    return np.array(x)


def _failing(a: Any, holds: Any) -> list[tuple[str, Any, Any]]:
    """Rows that say where a condition fails, with the elements there where it has the shape of the array."""
    a, holds = np.asarray(a), np.asarray(holds)
    same = a.shape == holds.shape
    if holds.ndim == 0:
        return [(f"value = {_brief(a)}", None, "")]
    places = np.argwhere(~holds)
    shown = [f"[{', '.join(map(str, p))}]" + (f" = {a[tuple(p)]}" if same else "") for p in places[:SHOWN]]
    more = f", and {len(places) - SHOWN} more" if len(places) > SHOWN else ""
    return [(f"at {', '.join(shown)}{more}", None, ""), *([] if same else [(f"value = {_brief(a)}", None, "")])]


def _brief(a: Any) -> str:
    """An array in one line."""
    a = np.asarray(a)
    if a.size <= SHOWN:
        return str(a[()] if not a.ndim else a.tolist())
    if a.dtype.kind in "biuf":
        return f"{a.dtype}{list(a.shape)} between {a.min()} and {a.max()}"
    return f"{a.dtype}{list(a.shape)}"


def _breakpoint_reference(x, *others, names, line, serial):
    if not _quiet.get():
        hooks.breakpoint({n: read_only(a) for n, a in zip(names, (x, *others), strict=True)}, line)
    return np.array(x)


def _tap_reference(x, *others, serial):
    listener = _listener.get()
    if listener is not None and not _quiet.get():
        listener([read_only(a) for a in others])
    return np.array(x)


def read_only(a: Any) -> np.ndarray:
    """A view that a user's function cannot write through: inputs are never modified."""
    view = np.asarray(a).view()
    view.flags.writeable = False
    return view


def _samples(**attrs: Any) -> Callable[[], Iterator[tuple[tuple, dict]]]:
    def samples() -> Iterator[tuple[tuple, dict]]:
        checks = (np.array([True, True, True, True]),) if "message" in attrs else ()
        for dtype in ("f8", "f4", "i8", "c16", "?"):
            yield (np.array([1, 2, 0, 3], dtype), *checks), dict(attrs)

    return samples


print_op = _identity(
    "print", "x; prints `format`, filled with the operands (those that `names` names as keywords).", _print_reference,
    _samples(format="{}", names=(), line="", batch=0, serial=-1), unnamed=1,
)  # fmt: skip
assert_op = _identity(
    "assert", "x, if every element of the second operand is true; else an error that shows the others.",
    _assert_reference, _samples(message="", names=(), line="", batch=0, serial=-1), least=2, unnamed=2,
)  # fmt: skip
breakpoint_op = _identity("breakpoint", "x; opens the debugger, with the operands by `names`.", _breakpoint_reference)
tap = _identity("tap", "x; gives the other operands to whoever listens to the call.", _tap_reference,
                _samples(serial=-1))  # fmt: skip
after = _identity("after", "x, when the other operands have been computed: keeps effects that nothing else needs.",
                  lambda x, *others: np.array(x), _samples(), traits=frozenset({"barrier"}))  # fmt: skip
