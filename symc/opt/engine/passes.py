"""Passes: named functions from Function to Function, and the run of a pipeline of them.

A rule pass applies families of rules; a graph pass is any function. Every pass leaves valid IR; ``verify=True`` checks
it after each one. Which there are, what a pipeline is, and why its passes stand in their order, is in
``pipelines``.
"""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from symc.errors import InternalError
from symc.ir import extensions, location
from symc.ir.bodies import is_control
from symc.ir.facts import Facts
from symc.ir.function import Function, with_sizes_unified
from symc.ir.garbage import no_collections
from symc.ir.ops.ensure import ensure_shape
from symc.ir.phases import phase
from symc.ir.record import dataclass, field, fields
from symc.ir.traverse import every_value, postorder, replace
from symc.ir.types import TensorType
from symc.ir.value import Region, Value, fresh_input
from symc.opt.canonicalize import NUMBERS_LAST
from symc.opt.engine.pass_registry import Pass, all_passes, find_pass
from symc.opt.engine.pipelines import DEFAULT, FORM, STABLE, Selection, parse_pipeline
from symc.opt.engine.provenance import Provenance
from symc.opt.engine.regions import in_bodies, live_lines, with_lines
from symc.opt.engine.rewrite import Rewriter
from symc.opt.engine.rule import ANY, OPT_IN, Rule, all_rules, known_names, remembered
from symc.opt.engine.terms import answers_kept
from symc.opt.facts.analysis import Analysis
from symc.opt.widen import widened


@dataclass(frozen=True)
class Step:
    """Record of one run of a pass."""

    name: str
    seconds: float
    values_after: int
    attempts: int = 0
    fired: int = 0


@dataclass
class Optimized:
    """``function`` after the whole pipeline; ``stages`` after each pass (the first is "input"). ``warned``: its order
    cannot work, and the user knows."""

    function: Function
    stages: dict[str, Function]
    provenance: Provenance
    report: list[Step] = field(default_factory=list)
    warned: bool = False


@phase("optimize")
def optimize(f: Function, pipeline: str = DEFAULT, *, strict: bool = False, verify: bool = False) -> Optimized:
    """Run a pipeline. ``strict``: a failing rule raises. ``verify``: check the IR after every pass.

    Raises PipelineError for an unknown pass, rule or tag.
    """
    selection = parse_pipeline(pipeline, [p.name for p in all_passes()], known_names())
    warned = check_order(selection.passes)
    with no_collections(), answers_kept():
        found = _optimize(f, selection, strict, verify)
    found.warned = warned
    return found


def _optimize(f: Function, selection: Selection, strict: bool, verify: bool) -> Optimized:
    out = Optimized(f, {"input": f}, Provenance())
    settled: tuple[Region, set[str]] = (f.body, set())  # a body, and families of rules of which none applies to it
    tried: dict[Value, frozenset[str]] = {}
    facts = Analysis()
    left: dict[str, Function] = {}  # what a pass on whole functions left as it was: it would again
    known: tuple[Function | None, frozenset[str]] = (None, frozenset())
    for name in selection.passes:
        p = _known(name)
        families = set(p.families)
        known = known if known[0] is f else (f, words_of(f))
        if (
            families and settled[0] is f.body and families <= settled[1]
            or left.get(name) is f
            or not _can_apply(p, known[1], selection)
        ):
            count = out.report[-1].values_after if out.report else len(f.values())
            step = Step(name, 0.0, count)
        else:
            before = f
            f, step = _run(p, f, selection, out.provenance, strict, tried, facts)
            if f is before and p.records is not None:
                left[name] = f
            settled = (f.body, families | settled[1] if f.body is settled[0] else families)
        if verify:
            _verify(name, f)
        out.stages[_stage_name(name, out.stages)] = f
        out.report.append(step)
    out.function = f
    return out


def _known(name: str) -> Pass:
    p = find_pass(name)
    assert p is not None, name
    return p


def words_of(f: Function) -> frozenset[str]:
    """The words of a function, its bodies included: the names, traits and facts of its ops, "control" for loops and
    branches, "state" for states."""
    values = f.values()
    if [v for v in values if v.regions]:
        values = list(every_value(f.body))
    ops = {v.op for v in values}
    words = {w for op in ops for w in (op.name, *op.traits, *stated(op.facts))}
    if _any_bodies(values):
        words.add("control")
    if any(i.role == "state" for i in f.inputs):
        words.add("state")
    return frozenset(words)


@functools.lru_cache(maxsize=1024)
def stated(facts: Facts) -> tuple[str, ...]:
    """The names of what a record states."""
    return tuple(name for name in fields(Facts) if getattr(facts, name))


def _can_apply(p: Pass, words: frozenset[str], selection: Selection) -> bool:
    """True if a function of these words has something that the pass starts at."""
    if p.families:
        rules = selected_rules(p.families, selection)
        roots = remembered(("roots", rules), lambda: frozenset(root for r in rules for root in r.roots))
        return ANY in roots or not words.isdisjoint(roots)
    return not p.on or not words.isdisjoint(p.on)


def check_order(names: Sequence[str]) -> bool:
    """Warn of passes in an order that cannot work; whether there are any."""
    for k, name in enumerate(names):
        late = [n for n in names[k + 1 :] if n in _known(name).undone_by]
        if late:
            warnings.warn(
                f"pipeline: {late[0]} comes after {name}, which it undoes or which leaves it nothing to look at; "
                f"put {late[0]} before {name}", stacklevel=2)
            return True
    return False


def _stage_name(name: str, stages: Iterable[str]) -> str:
    """``name``, or ``name.2`` and so on when the pass ran before."""
    stages = set(stages)
    k, out = 1, name
    while out in stages:
        k += 1
        out = f"{name}.{k}"
    return out


def selected_rules(families: Sequence[str], selection: Selection) -> tuple[Rule, ...]:
    """The rules of some families (and users' rules with "simplify"), without what the pipeline excludes."""
    wanted = (*families, *(("user",) if "algebra" in families else ()))
    without, also = selection.without, selection.also
    return remembered((wanted, without, also), lambda: tuple(
        r
        for r in all_rules(*wanted)
        if not (without and r.named(without)) and (OPT_IN not in r.tags or r.named(also))
    ))


@phase("pass", lambda p, *_: p.name)
def _run(
    p: Pass, f: Function, selection: Selection, provenance: Provenance, strict: bool,
    tried: dict[Value, frozenset[str]], facts: Analysis
) -> tuple[Function, Step]:
    """One pass. ``tried`` remembers which families do not apply to a value: an answer that no other value changes."""
    start = time.perf_counter()
    attempts = fired = 0
    if p.families:
        hints, inside = dict(f.hints), dict(f.inside)
        rewriter = Rewriter(selected_rules(p.families, selection), provenance, hints, inside, strict, p.name, tried,
                            facts=facts)
        results = rewriter.run(f.body.results)
        attempts, fired = rewriter.attempts, rewriter.fired
        body = Region(f.body.params, results)
        live = body.values
        new = with_lines(f.with_results(results, {v: hints[v] for v in live if v in hints}), inside)
        families = frozenset(p.families)
        if fired < rewriter.budget:
            unions: dict[frozenset[str] | None, frozenset[str]] = {None: families}
            for v in live:
                known = tried.get(v)
                union = unions.get(known)
                if union is None:
                    union = unions[known] = families | (known or families)
                tried[v] = union
    elif p.records is not None:
        fired = -len(provenance.firings)
        change = _checked(p, partial(p.records, provenance))
        new = in_bodies(change, f, p.bodies == "outer") if p.bodies else change(f)
        fired += len(provenance.firings)
    else:
        new = _run_function(p, f)
    if new.inside and new is not f:
        new = live_lines(new)
    return new, Step(p.name, time.perf_counter() - start, len(new.values()), attempts, fired)


def _run_function(p: Pass, f: Function) -> Function:
    assert p.function is not None
    run = _checked(p, p.function)
    return in_bodies(run, f, p.bodies == "outer") if p.bodies and _any_bodies(f.values()) else run(f)


def _checked(p: Pass, run: Callable[[Function], Function]) -> Callable[[Function], Function]:
    """``run``; of a user's pass with checks of what it gives, which others do not load."""
    if p.name not in extensions.noted("pass"):
        return run
    from symc.opt.engine.contract import keeping

    return keeping(p, run)


def _any_bodies(values: Sequence[Value]) -> bool:
    return any(map(is_control, [v for v in values if v.regions]))


def _verify(name: str, f: Function) -> None:
    from symc.ir.verify import verify

    try:
        verify(f)
    except InternalError as e:
        raise InternalError(f"after pass {name}: {e.what}", text=e.text) from e


def stabilize_values(roots: Sequence[Value], keep: Iterable[Value] = ()) -> list[Value]:
    """Values under construction, stabilized: what ``grad`` differentiates. ``keep`` values stay as they are.

    No rule looks through a kept value, so that derivatives by it can be taken of the result. Lines noted for what is
    replaced are noted for what replaces it.
    """
    kept = {v: fresh_input(v.type) for v in keep if isinstance(v.type, TensorType) and v.op.name != "input"}
    opened = widened(replace(roots, kept, location.move), location.move)
    opened, sized, inside = with_sizes_unified(opened, location.move)
    hints = {v: location.noted(v) for v in postorder(opened) if location.noted(v)}
    before = dict(hints)
    families = (*FORM, *STABLE, "edges")
    rules = remembered("stabilize_values", lambda: tuple(
        NUMBERS_LAST if r.name == NUMBERS_LAST.name else r for r in selected_rules(families, Selection(()))))
    made = Rewriter(rules, hints=hints, inside=inside, pass_name="stabilize").run(opened)
    for v, locs in hints.items():
        if before.get(v) != locs:
            location.note(v, locs)
    _note_inside(made, inside)
    guarded = {new: ensure_shape(old, shape=new.shape) for old, new in sized.items()}
    opened = replace(replace(made, guarded, location.move), {leaf: v for v, leaf in kept.items()}, location.move)
    return [v if v.type is r.type else ensure_shape(v, shape=r.shape) for v, r in zip(opened, roots, strict=True)]


def _note_inside(values: Sequence[Value], inside: location.Inside) -> None:
    """Loops that were rebuilt have the lines of their bodies, and of the bodies in those."""
    for v in postorder(values) if inside else ():
        for body in v.regions:
            wanted = [body, *(r for x in every_value(body) for r in x.regions)]
            location.note_inside(v, {r: inside[r] for r in wanted if r in inside})



def run_pass(name: str, f: Function, **options: Any) -> Function:
    """One pass on a function."""
    return optimize(f, name, **options).function
