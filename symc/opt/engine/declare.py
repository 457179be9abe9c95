"""Declarations of rules: ``@rule`` states an equation with the op builders, ``@rewrite`` is a function on a value."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from symc.errors import PipelineError
from symc.ir.dim import size_name
from symc.ir.late import late
from symc.ir.op import splat
from symc.ir.ops.assume import promised
from symc.ir.record import replace
from symc.ir.types import TensorType
from symc.ir.value import Value, held
from symc.opt.engine.examples import leaves, variables_of_rule
from symc.opt.engine.pattern import (
    Match,
    Node,
    Pattern,
    Terms,
    compile_pattern,
    match,
    needs,
    roots,
    takes_number,
    weight,
)
from symc.opt.engine.rule import (
    ANY,
    Context,
    Rule,
    asks_facts,
    canonical_rules,
    declared,
    parameters,
)
from symc.opt.engine.terms import cancels_first, kind_of
from symc.opt.facts.analysis import Analysis

#: Checks of users' rules, which others do not load.
check_equation, check_stated, given, two_sides = (
    late(f"symc.opt.engine.rule_contract.{name}") for name in ("check_equation", "check_stated", "given", "two_sides"))


def rule(
    fn: Callable | None = None,
    *,
    exact: bool = False,
    when: Callable[..., bool] | None = None,
    tags: Iterable[str] = (),
    kinds: str = "f",
    dtypes: Mapping[str, str] | None = None,
    family: str | None = None,
    domain: Mapping[str, tuple[float, float]] | None = None,
    check: bool = True,
    misses: Callable[[], Sequence[Value]] = tuple,
    written: Callable[[Any], Any] | None = None,
    arises: str = "",
    assumes: Mapping[str, str] | None = None,
) -> Any:
    """Declare a rule: a function of values that returns ``(left, right)``; its docstring says why.

    ``when(*values)``: a side condition; with a keyword ``facts``, also on what is known of values:
    ``when=lambda x, *, facts: facts(x).positive``.
    ``assumes``: a fact that a variable must have (``{"x": "positive"}``); in examples it is promised.
    ``dtypes``: traced dtype of a variable, if not float64 (``{"c": "bool"}``).
    ``domain``: the interval of a variable in which the equation is meant, for the accuracy tests.
    Exact rules match sums and products as written; others modulo association. ``check=False`` registers a left side
    that is not canonical (the rules of canonicalize themselves). ``misses``, ``written``, ``arises``: for tests and
    documentation, see ``Rule``. Raises PipelineError for a rule that cannot work.
    """

    def declare(f: Callable) -> Rule:
        sides = _of_values(f, tensors=True)
        if sides is not f:
            check_stated(f, kinds=kinds)

        def make() -> Rule:
            made = _pattern_rule(
                sides, check, exact=exact, when=_with_facts(f, when, assumes), tags=frozenset(tags), kinds=kinds,
                dtypes=dict(dtypes or {}), family=family or family_of(f), domain=dict(domain or {}), misses=misses,
                written=written, arises=arises)
            return _assuming(made, assumes) if assumes else made

        return declared(f, make)

    return declare(fn) if fn is not None else declare


def _with_facts(f: Callable, when: Callable | None, assumes: Mapping[str, str] | None) -> Callable | None:
    """The side condition, with what is assumed of variables."""
    if not assumes:
        return when
    names = parameters(f)
    wanted = [(names.index(n), fact) for n, fact in assumes.items()]

    def holds(*bound: Value, facts: Analysis) -> bool:
        return all(getattr(facts(bound[k]), fact) for k, fact in wanted) and (when is None or when(*bound))

    return holds


def _assuming(r: Rule, assumes: Mapping[str, str]) -> Rule:
    """``r``, in whose examples the facts it needs are promised."""
    sides = r.build
    assert sides is not None

    def build(*given: Value) -> Any:
        return sides(*(promised(x, assumes[n]) if n in assumes else x for n, x in zip(r.variables, given, strict=True)))

    def examples() -> list[Value]:
        dtypes = dict(enumerate(r.dtypes.get(n, default_dtype(r.kinds)) for n in r.variables))
        shapes = ((), (3,), (size_name("n"), 2))
        return [build(*leaves(len(r.variables), dtypes, shape))[0] for shape in shapes]

    condition = ", ".join(f"{n} {fact}" for n, fact in assumes.items())
    return replace(r, build=build, examples=examples, says=lambda: f"{r.equation} for {condition}")


def default_dtype(kinds: str) -> str:
    """The dtype that the variables of a rule are traced in."""
    return "f64" if "f" in kinds else "bool" if kinds == "b" else "i64"


def rewrite(
    *op_names: str,
    exact: bool = False,
    tags: Iterable[str] = (),
    kinds: str = "biufc",
    family: str | None = None,
    examples: Callable[[], Sequence[Value]] = tuple,
    equation: str = "",
    weight: int = 1,
    trait: str = "",
    needs: Iterable[str] = (),
    misses: Callable[[], Sequence[Value]] = tuple,
    written: Callable[[Any], Any] | None = None,
    arises: str = "",
    met: Iterable[str] = (),
) -> Any:
    """Declare a structural rewrite of the ops named: ``fn(v)`` or ``fn(v, context)`` gives a value, None, or why not.

    Without names it is offered every op (with a ``trait``, if given). ``needs``: op names that must be among the
    operands (``#`` for a number), so that most values are passed by quickly. ``met``: op names that are in every left
    side, wherever: a rule of symc's own is not read before all of them have been met.
    """

    def declare(f: Callable) -> Rule:
        found = _of_values(f, tensors=False)
        if found is not f:
            check_stated(f, op_names, kinds)
        wants_context = len(parameters(f)) > 1
        apply = found if wants_context else lambda v, context: found(v)
        return declared(f, lambda: Rule(
            **_stated_by(f), family=family or family_of(f), exact=exact, roots=op_names or (ANY,),
            apply=_of_kinds(apply, kinds), tags=frozenset(tags), kinds=kinds, weight=weight, says=equation,
            examples=examples, needs=frozenset(needs), contextual=wants_context,
            traits=frozenset([trait] if trait else ()), misses=misses, written=written, arises=arises,
            met=frozenset(met)))

    if any(map(callable, op_names)):
        raise PipelineError("@rewrite takes the names of the ops that it is for", help='@rewrite("log")')
    return declare


def _of_values(f: Callable, tensors: bool) -> Callable:
    """A rule of a user's as a function of values: it may be written with the functions that programs are written with,
    and an equation on what they take."""
    if family_of(f) != "user":
        return f

    @functools.wraps(f)
    def of_values(*values: Any, **context: Any) -> Any:
        if tensors:
            values = tuple(v.tensor if isinstance(v, Value) else v for v in values)
        found = f(*values, **context)
        return two_sides(f, found) if tensors else given(f, values[0], held(found))

    return of_values


def family_of(f: Callable) -> str:
    """The family of a rule is the module it is written in; outside symc it is "user"."""
    module = getattr(f, "__module__", "")
    return module.rsplit(".", 1)[-1] if module.startswith("symc.opt.") else "user"


def _stated_by(f: Callable) -> dict[str, Any]:
    """Fields of a rule that its function says by itself."""
    code = inspect.unwrap(f).__code__
    return dict(name=f.__name__, doc=inspect.cleandoc(f.__doc__ or ""), build=f, module=f.__module__,
                source=(code.co_filename, code.co_firstlineno))


def _of_kinds(apply: Callable, kinds: str) -> Callable:
    """``apply``, asked only about values with operands of these dtype kinds, and maybe bools beside them."""
    if set(kinds) >= set("biufc"):
        return apply

    allowed, beside = frozenset(kinds + "b"), {"b"} - set(kinds)

    def guarded(v: Value, context: Context) -> Value | str | None:
        found = {t.dtype.kind for o in v.operands if isinstance(t := o.type, TensorType)}
        return None if found - allowed or found and found == beside else apply(v, context)

    return guarded


def _pattern_rule(f: Callable, check: bool, *, exact: bool, when: Callable | None, kinds: str, dtypes: dict[str, str],
                  family: str, **stated: Any) -> Rule:
    """A rule of an equation. ``stated``: fields of it that nothing here depends on."""
    names = tuple(parameters(f))
    by_index = {k: dtypes.get(n, default_dtype(kinds)) for k, n in enumerate(names)}
    variables = variables_of_rule(len(names), by_index)
    lhs, rhs = f(*variables)
    if family == "user":
        check_equation(f, lhs, rhs, dict(zip(variables, names, strict=True)))
    canonical = _canonical(lhs) if check else lhs
    if canonical.op.name in ("input", "constant"):
        raise PipelineError(f"rule {f.__name__}: canonicalize already turns its left side into {_text(canonical)}")
    p = compile_pattern(canonical, variables, terms=not exact)
    if not isinstance(p, Node | Terms):
        raise PipelineError(f"rule {f.__name__}: its left side is a leaf, which would match everything")
    if isinstance(rhs, Value) and family == "user":  # (tests do it for the others: it takes longer than all the rest)
        reject_loops(f.__name__, p, rhs, exact, check, when)

    def examples() -> list[Value]:
        return [f(*leaves(len(names), by_index, shape))[0] for shape in ((), (3,), (size_name("n"), 2))]

    def equation() -> str:
        return " -> ".join(_text(side, variables, names) for side in f(*variables))

    free = {k: n for k, n in by_index.items() if n == "bool"}
    return Rule(
        **_stated_by(f), family=family, exact=exact, roots=roots(p), kinds=kinds, weight=weight(p), says=equation,
        apply=_matcher(f, p, len(names), exact, when, kinds, free), examples=examples, pattern=p, variables=names,
        dtypes=dtypes, when=when, needs=needs(p), contextual=asks_facts(when), **stated)


def _matcher(
    f: Callable, p: Pattern, count: int, exact: bool, when: Callable | None, kinds: str, free: Mapping[int, str]
) -> Callable:
    of_facts, with_number = asks_facts(when), not exact and takes_number(p)

    def apply(v: Value, context: Context) -> Value | None:
        m = match(p, v, bitwise=exact)
        if m is None:
            return None
        if with_number and any(cancels_first(x, context.facts) for x in ((v,) if kind_of(v.op.name) else v.operands)):
            return None
        bound = [m.bound.get(k) for k in range(count)]
        if any(b is not None and k not in free and b.dtype.kind not in kinds for k, b in enumerate(bound)):
            return None
        if when is not None and not (when(*bound, facts=context.facts) if of_facts else when(*bound)):
            return None
        return instantiate(f, bound, m, v)

    return apply


def instantiate(f: Callable, bound: Sequence[Value | None], m: Match, v: Value) -> Value:
    """The right side on matched values. A number takes the type of what it replaces."""
    right = f(*bound)[1]
    if not isinstance(right, Value):
        t = v.type if not m.rest else TensorType(v.dtype, v.shape)
        right = splat(right, t)
    return m.complete(right)


def _canonical(v: Value) -> Value:
    """``v`` by the rules of canonicalize, as every pattern is compared after them."""
    from symc.opt.engine.rewrite import Rewriter

    return Rewriter(canonical_rules(), strict=True).run([v])[0]


def reject_loops(name: str, p: Pattern, rhs: Value, exact: bool, check: bool, when: Callable | None) -> None:
    """Raise PipelineError for a rule that would never end, because its right side contains its left side again."""
    from symc.ir.traverse import postorder

    if when is not None:
        return  # the condition may end it; the generated termination test decides
    for r in postorder([_canonical(rhs) if check else rhs]):
        if r.operands and match(p, r, bitwise=exact) is not None:
            raise PipelineError(f"rule {name}: its right side contains its left side again, so it would never end")


def _text(v: Any, variables: Sequence[Value] = (), names: Sequence[str] = ()) -> str:
    from symc.opt.engine.provenance import expression

    if not isinstance(v, Value):
        return str(v)
    text = expression(v, 9)
    for x, n in zip(variables, names, strict=True):
        text = text.replace(f"v{x.attrs['serial']}", n)
    return text[1:-1] if text.startswith("(") and text.endswith(")") and text.count("(") == 1 else text
