"""Checks of what a user's pass must keep: the function's interface, the types of its results, and that it is closed.

Whoever calls the compiled function knows it by its inputs and results, and plans read memory by their types. So what is
wrong is told when the pass has run, with its line, and not by whatever comes to it next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from symc.errors import InternalError, PipelineError
from symc.ir.function import Function, Input
from symc.ir.location import Loc
from symc.ir.record import replace
from symc.ir.traverse import postorder
from symc.ir.value import first_line
from symc.ir.verify import verify
from symc.opt.engine.pass_registry import Pass

RETURN = "a pass takes a Function and returns one: the same, or function.with_results([...])"


def keeping(p: Pass, run: Callable[[Function], Any]) -> Callable[[Function], Function]:
    """``run``, the function of a pass, which says what is wrong with what it gives."""

    def checked(f: Function) -> Function:
        try:
            found = run(f)
        except Exception as e:
            e.add_note(f"in pass {p.name!r} on @{f.name}, {_line(p)}")
            raise
        return f if found is f else _kept(p, f, found)

    return checked


def _line(p: Pass) -> Loc:
    how = p.function or p.records
    code = getattr(how, "__code__", None)
    return Loc(code.co_filename, code.co_firstlineno) if code is not None else Loc(repr(how), 0)


def _kept(p: Pass, f: Function, new: Any) -> Function:
    """``new`` with what no pass changes (and no text says) as it was in ``f``."""

    def wrong(what: str, values: Sequence[tuple[str, Any, Any]] = (), hint: str = "") -> PipelineError:
        return PipelineError(f"pass {p.name!r} {what}", values=values, where=[_line(p)], help=hint or None)

    if not isinstance(new, Function):
        raise wrong(f"gave a {type(new).__name__}, not a Function", hint=RETURN)
    if list(map(_told, new.inputs)) != list(map(_told, f.inputs)) or new.body.params != f.body.params:
        raise wrong("changed the inputs of the function", [
            ("they were", ", ".join(map(_said, f.inputs)) or "none", None),
            ("and are", ", ".join(map(_said, new.inputs)) or "none", None)], RETURN)
    if new.updates != f.updates or len(new.body.results) != len(f.body.results):
        raise wrong("changed how many results there are", [
            ("there were", _counted(f), None), ("and are", _counted(new), None)],
            "results are the outputs, then the new values of states")
    _values_of(f, new, wrong)
    lost = tuple(g for g in f.guards if g not in new.guards)
    return replace(new, inputs=f.inputs, guards=(*lost, *new.guards))


def _values_of(f: Function, new: Function, wrong: Callable[..., PipelineError]) -> None:
    """Checks that results have the types that they had, and are made of the function's own params."""
    for k, (old, v) in enumerate(zip(f.body.results, new.body.results, strict=True)):
        if v.type is not old.type:
            raise wrong(f"changed the type of result {k}", [
                ("it was", old.type, next(iter(f.locations(old)), None)),
                ("and is", v.type, next(iter(new.locations(v)), None))],
                "cast, broadcast or reshape what replaces a value to its type")
    foreign = next((v for v in postorder(new.body.results) if v.op.name == "input"), None)
    if foreign is not None:
        raise wrong("uses a value that is not of the function it was given",
                    [("the input", foreign.type, first_line(foreign))],
                    "use function.params, and what is among function.values()")
    try:
        verify(new)
    except InternalError as e:
        raise wrong(f"made a function that is none: {e.what}") from e


def _told(i: Input) -> tuple:
    return i.name, i.type, i.role


def _said(i: Input) -> str:
    return f"{'state ' if i.role == 'state' else ''}%{i.name}: {i.type}"


def _counted(f: Function) -> str:
    updated = ", ".join(f.inputs[k].name for k in f.updates)
    return f"{len(f.outputs)} outputs" + (f" and updates of {updated}" if updated else "")

