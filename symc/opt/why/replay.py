"""One pass once more, with only the first firings of its rules: how the guilty one is found."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from symc.ir.function import Function
from symc.ir.record import replace
from symc.ir.value import Value
from symc.opt.engine.pass_registry import all_passes
from symc.opt.engine.passes import selected_rules
from symc.opt.engine.pipelines import parse_pipeline
from symc.opt.engine.provenance import Firing, Provenance
from symc.opt.engine.rewrite import Rewriter
from symc.opt.engine.rule import Context, Rule, known_names


def has_rules(name: str) -> bool:
    """True if a pass applies rules, so that it can be stopped between two of them."""
    return any(p.name == name and p.families for p in all_passes())


def replay(name: str, f: Function, pipeline: str, most: int | None = None) -> tuple[Function, Sequence[Firing]]:
    """The function that rules of pass ``name`` make when they may fire ``most`` times, and the firings, in order.

    ``pipeline`` says which rules are left out or let in.
    """
    passes = {p.name: p for p in all_passes()}
    selection = parse_pipeline(pipeline, passes, known_names())
    left = [most if most is not None else -1]
    provenance = Provenance()
    rules = [_counted(r, left) for r in selected_rules(passes[name].families, selection)]
    hints, inside = dict(f.hints), dict(f.inside)
    results = Rewriter(rules, provenance, hints, inside, False, name).run(f.body.results)
    return replace(f.with_results(results, hints), inside=inside), provenance.firings


def _counted(r: Rule, left: list[int]) -> Rule:
    """A rule that does nothing once none is left."""

    def counted(apply: Callable[[Value, Context], Value | str | None]) -> Callable:
        def limited(v: Value, context: Context) -> Value | str | None:
            if not left[0]:
                return None
            new = apply(v, context)
            if isinstance(new, Value) and new is not v and new.type is v.type:
                left[0] -= 1
            return new

        return limited

    return replace(r, apply=counted(r.apply))
