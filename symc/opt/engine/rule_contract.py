"""Checks of what a user's rule states and gives. What is wrong is told with the rule's line: when it is declared, where
that shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from symc.errors import PipelineError, did_you_mean
from symc.ir import extensions
from symc.ir.location import Loc
from symc.ir.traverse import free_inputs, postorder
from symc.ir.value import OPS, Value, first_line, held

KINDS = "biufc"
#: More values than a rule writes.
WRITTEN = 500


def wrong(
    f: Callable, what: str, values: Sequence[tuple[str, Any, Any]] = (), hint: str | None = None
) -> PipelineError:
    """An error about the rule that ``f`` states."""
    code = getattr(extensions.innermost(f), "__code__", None)
    where = [] if code is None else [Loc(code.co_filename, code.co_firstlineno)]
    return PipelineError(f"rule {f.__name__} {what}", values=values, where=where, help=hint)


def two_sides(f: Callable, found: Any) -> tuple[Any, Any]:
    """The sides of an equation, of which the left one is a value."""
    hint = "return both sides: return sc.log(1 + x), sc.log1p(x)"
    if not isinstance(found, tuple | list) or len(found) != 2:
        said = f"{len(found)} of them" if isinstance(found, tuple | list) else f"a {type(found).__name__}"
        raise wrong(f, f"gives {said}, not its two sides", hint=hint)
    left, right = map(held, found)
    if not isinstance(left, Value):
        raise wrong(f, f"has a {type(left).__name__} on its left, not a value", hint=hint)
    return left, right


def check_equation(f: Callable, left: Value, right: Any, names: Mapping[Value, str]) -> None:
    """Raises PipelineError unless an equation is about its variables, all bound by its left side, in one type."""
    bound = set(free_inputs([left]))
    for side, v in (("left", left), ("right", right)):
        for leaf in free_inputs([v]) if isinstance(v, Value) else ():
            if leaf not in names:
                raise wrong(f, f"has on its {side} a value from outside of it",
                            [("the value", leaf.type, first_line(leaf))], "a rule is about its arguments and numbers")
            if leaf not in bound:
                raise wrong(f, f"has {names[leaf]} on its right, which its left side does not say", hint="use what "
                            "the left side matches: " + ", ".join(n for v, n in names.items() if v in bound))
    if isinstance(right, Value) and right.type is not left.type:
        raise wrong(f, "has sides of two types", [("left", left.type, None), ("right", right.type, None)],
                    "both must be equal in shape and dtype: cast the right one")
    for side, v in (("left", left), ("right", right)):
        for part in postorder([v]) if isinstance(v, Value) else ():
            if "reduction" in part.op.traits and not part.attrs["axes"]:
                name = part.op.name
                raise wrong(f, f"has {name} of a number on its {side}, which stands for no {name} of an array",
                            hint=f"arguments of a rule stand for elements; @rewrite({name!r}) sees axes")


def check_stated(f: Callable, op_names: Iterable[Any] = (), kinds: str = KINDS) -> None:
    """Raises PipelineError where a rule is for dtype kinds or ops that do not exist."""
    if strange := sorted(set(kinds) - set(KINDS)):
        raise wrong(f, f"is for dtypes of kind {strange[0]!r}, which there are not",
                    hint="kinds are b (bool), i and u (integers), f (floats), c (complex): kinds='fc'")
    for name in op_names:
        if name not in OPS:
            raise wrong(f, f"is for the op {name!r}, which there is not", hint=did_you_mean(str(name), OPS))


def _leaves(new: Value, known: set[Value]) -> Iterator[Value]:
    """The inputs in what a rewrite made, in front of what is ``known`` and as far as a rule may have written it."""
    pending, seen = [new], known
    while pending and len(seen) < WRITTEN:
        v = pending.pop()
        if v not in seen:
            seen.add(v)
            pending += v.operands
            if v.op.name == "input":
                yield v


def given(r: Any, v: Value, new: Any) -> Value | str | None:
    """The answer of a rewrite for ``v``: a value, None, or a string that says why not."""
    if new is None or isinstance(new, str):
        return new
    if not isinstance(new, Value):
        raise wrong(r, f"gives a {type(new).__name__}, not a value, None, or a string that says why not")
    foreign = next((leaf for leaf in _leaves(new, {v, *v.operands}) if leaf not in free_inputs([v])), None)
    if foreign is not None:
        raise wrong(r, "gives a value from outside of what it was given",
                    [("the value", foreign.type, first_line(foreign))], "make it of the operands")
    return new
