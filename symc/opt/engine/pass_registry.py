"""Passes: what one states of itself, and the registry of all. ``pipelines`` puts them in order, ``passes`` runs them.

A pass states everything in its own file: ``@standard_pass`` says where it stands in the pipelines, and why there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from symc.errors import PipelineError
from symc.ir import extensions
from symc.ir.function import Function
from symc.ir.late import late
from symc.ir.record import dataclass
from symc.ir.value import Value
from symc.opt.engine.provenance import Provenance

F = TypeVar("F", bound=Callable[..., Function])


@dataclass(frozen=True)
class Pass:
    """A pass: either ``families`` of rules, which look into loops and branches, or a function.

    ``bodies``: the function is run on the bodies of loops and branches too, "inner" ones first or "outer" ones first.
    ``records``: a function that records what it did; without ``bodies`` it sees to them itself.
    ``reasons``: of the functions before and after, what the pass left alone, and why in words.
    ``on``: it does nothing to a function without one of these (``words_of``).
    ``makes``: the names of the ops that only this pass makes.
    ``undone_by``: passes that must not run after it, because they would undo it or find nothing to look at.
    ``after``: the passes that it comes right after in symc's own pipelines ("simplify.2" is the second one), ``why``
    the reason; ``target``: "cpu" or "cuda" where it is for one of them alone; ``for_kernels``: its purpose is kernels
    and memory, which an evaluation op by op has not.
    """

    name: str
    doc: str
    families: tuple[str, ...] = ()
    function: Callable[[Function], Function] | None = None
    bodies: str = ""
    records: Callable[[Provenance, Function], Function] | None = None
    reasons: Callable[[Function, Function], Iterable[tuple[Value | None, str]]] | None = None
    on: tuple[str, ...] = ()
    makes: tuple[str, ...] = ()
    undone_by: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    why: str = ""
    target: str = ""
    for_kernels: bool = False


_passes: dict[str, Pass] = {}
_standard: dict[str, dict[str, Any]] = {}  # passes in files of their own, functions as paths


def register_pass(p: Pass) -> Pass:
    """Add a pass. Its name must be new."""
    if p.name in _passes:
        raise PipelineError(f"a pass is already called {p.name!r}")
    how = p.function or p.records
    extensions.note("pass", p.name, extensions.PACKAGE if how is None else extensions.file_of(how))
    _passes[p.name] = p
    return p


def unregister_pass(name: str) -> None:
    """Take a user's pass out again."""
    if name in _passes:
        extensions.note_removal("pass", name)
        del _passes[name]


def graph_pass(name: str, bodies: bool = False) -> Callable[[F], F]:
    """Declare a pass: a function from Function to Function, for pipelines to name.

    ``bodies``: it also runs on the bodies of loops and branches, each given as a function of its params.
    """

    def declare(f: F) -> F:
        register_pass(Pass(name, (f.__doc__ or "").strip(), function=f, bodies="inner" if bodies else ""))
        return f

    return declare


def standard_pass(name: str = "", records: bool = True, reasons: str = "", **stated: Any) -> Callable[[F], F]:
    """Declare a pass of symc's own: its docstring says what it does, ``stated`` are fields of its ``Pass``, ``reasons``
    names a function of ``why.reasons``. Unless it ``records``, it takes a Function alone."""

    def declare(f: F) -> F:
        kind, path = "records" if records else "function", f"{f.__module__}.{f.__name__}"
        row = {"name": name or f.__name__, "doc": (f.__doc__ or "").partition("\n")[0], kind: path, **stated}
        if reasons:
            row["reasons"] = f"symc.opt.why.reasons.{reasons}"
        take_row(row)
        return f

    return declare


def take_row(row: dict[str, Any]) -> None:
    """Register a pass by what its file states; the file itself is imported when the pass runs."""
    if row["name"] not in _standard:
        _standard[row["name"]] = row
        fields: dict[str, Any] = {k: late(x) if k in ("function", "records", "reasons") else x for k, x in row.items()}
        register_pass(Pass(**fields))


def rows() -> list[dict[str, Any]]:
    """Passes in files of their own, as they state themselves."""
    return list(_standard.values())


def find_pass(name: str) -> Pass | None:
    """The pass called ``name``, if there is one."""
    return _passes.get(name)


def all_passes() -> list[Pass]:
    """Every pass, by name."""
    return [_passes[n] for n in sorted(_passes)]


def placed(spine: tuple[str, ...]) -> list[Pass]:
    """The passes of a spine, in its order, each followed by those that state that they come right after it."""
    followers: dict[str, list[str]] = {}
    for p in all_passes():
        for k, anchor in enumerate(p.after, 1):
            followers.setdefault(anchor, []).append(p.name if k == 1 else f"{p.name}.{k}")
    order: list[Pass] = []
    stack = list(spine)[::-1]
    while stack:
        label = stack.pop()
        order.append(_passes[label.partition(".")[0]])
        stack += followers.pop(label, [])[::-1]
    if followers:
        lost, wanted = next(iter(followers.items()))
        raise PipelineError(f"pass {wanted[0]!r} comes after {lost!r}, which no pipeline has")
    return order
