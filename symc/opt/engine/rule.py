"""Rules: what they are, how they are declared, and the registry of all of them by family.

Two kinds, one record. ``@rule`` states an equation with the op builders; ``@rewrite`` is a function on a value for what
an equation cannot say (axes, permutations, any number of operands). Both claim whether they are exact, bit for bit.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from typing import Any, Protocol

from symc.errors import PipelineError, did_you_mean
from symc.ir import extensions
from symc.ir.dim import size_name
from symc.ir.op import splat
from symc.ir.ops.assume import promised
from symc.ir.record import dataclass, field, replace
from symc.ir.types import TensorType
from symc.ir.value import Value, held
from symc.opt.engine.pattern import (
    Match,
    Node,
    Pattern,
    Terms,
    cancels_first,
    compile_pattern,
    keeps_kind,
    kind_of,
    leaves,
    match,
    needs,
    ops_of,
    roots,
    takes_number,
    variables_of_rule,
    weight,
)
from symc.opt.facts.analysis import Analysis

#: A rewrite of ``ANY`` is offered every value.
ANY = "*"
#: Rules with this tag run only when a pipeline asks for them (``+name`` or ``+tag``).
OPT_IN = "opt-in"
#: Of a code object: it takes any number of arguments.
VARIABLE = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


class Context(Protocol):
    """What a rule may ask the driver. ``facts(v)``: what is known of the numbers in ``v``."""

    @property
    def facts(self) -> Analysis: ...

    def single_use(self, v: Value) -> bool: ...

    def present(self, v: Value) -> bool: ...

    def sliced_apart(self, v: Value) -> bool: ...


@dataclass(eq=False)
class Rule:
    """One rewrite.

    ``exact``: the right side gives the same bits (nan equals nan) wherever the left side gives a result.
    ``kinds``: dtype kinds it is for. ``apply(v, context)`` gives the replacement, None, or a string that says why not.
    ``examples()``: left sides as values of free leaves, from which tests and documentation are made. ``misses()``:
    values that come near and must not be rewritten. ``written(sc)``: what a user writes, with ``sc`` for the package,
    where that is not what the left side says; ``arises``: where the left side comes from, if no user writes it.
    """

    name: str
    family: str
    exact: bool
    roots: tuple[str, ...]
    apply: Callable[[Value, Context], Value | str | None]
    doc: str = ""
    tags: frozenset[str] = frozenset()
    kinds: str = "f"
    weight: int = 1
    says: str | Callable[[], str] = ""  # its equation
    examples: Callable[[], Sequence[Value]] = tuple
    pattern: Pattern | None = None
    build: Callable[..., Any] | None = None
    variables: tuple[str, ...] = ()
    dtypes: Mapping[str, str] = field(default_factory=dict)
    when: Callable[..., bool] | None = None
    domain: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    source: tuple[str, int] = ("", 0)
    needs: frozenset[str] = frozenset()  # op names that must be right below
    contextual: bool = False  # its answer depends on more than the value: who else uses what
    traits: frozenset[str] = frozenset()  # with ANY: traits the op must have
    module: str = ""  # that declares it
    misses: Callable[[], Sequence[Value]] = tuple
    written: Callable[[Any], Any] | None = None
    arises: str = ""
    met: frozenset[str] = frozenset()  # op names of which a rewrite can say that all of them are in its left sides

    @cached_property
    def equation(self) -> str:
        """What it says, as text; written when it is first asked for."""
        return self.says if isinstance(self.says, str) else self.says()

    @cached_property
    def by_pattern(self) -> bool:
        """Whether it is an equation: a pattern and what is put in its place."""
        return self.pattern is not None

    @cached_property
    def ops(self) -> frozenset[str]:
        """The names of ops that must be there, but for sums and products."""
        return self.met if self.pattern is None else ops_of(self.pattern)

    @cached_property
    def keeps_kind(self) -> bool:
        """Whether what its pattern matches has the dtype kind of what its variables are."""
        return self.pattern is not None and keeps_kind(self.pattern)

    def __repr__(self) -> str:
        return f"<rule {self.name}>"

    def holds(self, bound: Sequence[Value | None], facts: Analysis) -> bool:
        """Whether the side condition holds of matched values."""
        return self.when is None or bool(self.when(*bound, facts=facts) if asks_facts(self.when) else self.when(*bound))

    def named(self, names: Iterable[str]) -> bool:
        """Whether the rule has one of these names, tags or families."""
        names = set(names)
        return self.name in names or self.family in names or bool(self.tags & names)


def asks_facts(when: Callable | None) -> bool:
    """Whether a side condition takes ``facts``: what is known of values."""
    return when is not None and "facts" in parameters(when)


def parameters(f: Callable) -> list[str]:
    """What a function calls its arguments. (``inspect.signature`` takes long, and there are many rules.)"""
    code = getattr(f, "__code__", None)
    if code is None or code.co_flags & VARIABLE or hasattr(f, "__wrapped__"):
        return list(inspect.signature(f).parameters)
    return list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])


#: What makes a rule.
Make = Callable[[], Rule]

_rules: dict[str, Rule] = {}
_awaited: dict[tuple[str, str], Callable[[Make], Rule]] = {}  # by module and name: who takes it when it is declared
_answers: dict[Any, Any] = {}  # what was found out about the rules there are


def remembered(key: Any, find: Callable[[], Any]) -> Any:
    """What ``find`` gives, found once for the rules that are registered."""
    found = _answers.get(key)
    if found is None:
        found = _answers[key] = find()
    return found


def register(r: Rule) -> Rule:
    """Add a rule. Its name must be new."""
    if r.name in _rules:
        raise PipelineError(
            f"a rule is already called {r.name!r}", help="give it another name, or unregister the first"
        )
    extensions.note("rule", r.name, r.source[0] or extensions.file_of(r.apply))
    _rules[r.name] = r
    _answers.clear()
    if r.family == "canonicalize":  # (while the others are registered, each is compared with the same of these)
        _canonical_rules.cache_clear()
    return r


def register_late(r: Rule, module: str, take: Callable[[Make], Rule]) -> None:
    """Add a rule of symc's own of which only some is known: ``take`` gets what makes it when ``module`` declares it."""
    _awaited[module, r.name] = take
    _rules[r.name] = r


def arrange(modules: Sequence[str]) -> None:
    """Let the rules have the order of the modules that declare them."""
    rank = {m: k for k, m in enumerate(modules)}
    ordered = sorted(_rules.items(), key=lambda item: rank.get(item[1].module, len(rank)))
    _rules.clear()
    _rules.update(ordered)


def _declared(f: Callable, make: Make) -> Rule:
    take = _awaited.pop((f.__module__, f.__name__), None)
    return register(make()) if take is None else take(make)


def unregister(name: str) -> None:
    """Take a rule out."""
    if name not in _rules:
        raise PipelineError(f"no rule is called {name!r}", help=did_you_mean(name, _rules))
    extensions.note_removal("rule", name)
    del _rules[name]
    _answers.clear()
    _canonical_rules.cache_clear()


def all_rules(*families: str) -> list[Rule]:
    """Every rule, or those of some families, in the order of registration."""
    return [r for r in _rules.values() if not families or r.family in families]


def lookup_rule(name: str) -> Rule:
    """The rule called ``name``. Raises PipelineError with a suggestion for an unknown one."""
    if name not in _rules:
        raise PipelineError(f"no rule is called {name!r}", help=did_you_mean(name, _rules))
    return _rules[name]


def known_names() -> frozenset[str]:
    """Every rule name, family and tag."""
    return remembered("names", lambda: frozenset(n for r in _rules.values() for n in (r.name, r.family, *r.tags)))


@contextmanager
def temporary_rules() -> Iterator[None]:
    """Rules registered inside are gone afterwards (for tests)."""
    before, noted = dict(_rules), extensions.noted("rule")
    try:
        yield
    finally:
        extensions.restore("rule", noted)
        _rules.clear()
        _rules.update(before)
        _answers.clear()
        _canonical_rules.cache_clear()


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

        def make() -> Rule:
            made = _pattern_rule(
                sides, exact, _with_facts(f, when, assumes), tags, kinds, dict(dtypes or {}), family or family_of(f),
                dict(domain or {}), check,
            )
            made = replace(made, misses=misses, written=written, arises=arises, contextual=asks_facts(made.when))
            return _assuming(made, assumes) if assumes else made

        return _declared(f, make)

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
    """What the variables of a rule are traced as."""
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
        wants_context = len(parameters(f)) > 1
        found = _of_values(f, tensors=False)
        apply = found if wants_context else lambda v, context: found(v)
        return _declared(
            f,
            lambda: Rule(
                f.__name__,
                family or family_of(f),
                exact,
                op_names or (ANY,),
                _of_kinds(apply, kinds),
                _doc(f),
                frozenset(tags),
                kinds,
                weight,
                equation,
                examples,
                build=f,
                source=_source(f),
                needs=frozenset(needs),
                contextual=wants_context,
                traits=frozenset([trait] if trait else ()),
                misses=misses,
                written=written,
                arises=arises,
                module=f.__module__,
                met=frozenset(met),
            ),
        )

    return declare


def _of_values(f: Callable, tensors: bool) -> Callable:
    """A rule of a user's as a function of values: it may be written with the functions that programs are written with,
    and an equation on what they take."""
    if family_of(f) != "user":
        return f

    @functools.wraps(f)
    def given(*values: Any, **context: Any) -> Any:
        if tensors:
            values = tuple(v.tensor if isinstance(v, Value) else v for v in values)
        found = f(*values, **context)
        return tuple(map(held, found)) if isinstance(found, tuple | list) else held(found)

    return given


def family_of(f: Callable) -> str:
    """The family of a rule is the module it is written in; outside symc it is "user"."""
    module = getattr(f, "__module__", "")
    return module.rsplit(".", 1)[-1] if module.startswith("symc.opt.") else "user"


def _doc(f: Callable) -> str:
    return inspect.cleandoc(f.__doc__ or "")


def _source(f: Callable) -> tuple[str, int]:
    f = inspect.unwrap(f)
    return f.__code__.co_filename, f.__code__.co_firstlineno


def _of_kinds(apply: Callable, kinds: str) -> Callable:
    """``apply``, asked only about values with operands of these dtype kinds."""
    if set(kinds) >= set("biufc"):
        return apply

    allowed = frozenset(kinds + "b")

    def guarded(v: Value, context: Context) -> Value | str | None:
        for o in v.operands:
            t = o.type
            if isinstance(t, TensorType) and t.dtype.kind not in allowed:
                return None
        return apply(v, context)

    return guarded


def _pattern_rule(
    f: Callable,
    exact: bool,
    when: Callable | None,
    tags: Iterable[str],
    kinds: str,
    dtypes: dict[str, str],
    family: str,
    domain: dict[str, tuple[float, float]],
    check: bool,
) -> Rule:
    names = tuple(parameters(f))
    by_index = {k: dtypes.get(n, default_dtype(kinds)) for k, n in enumerate(names)}
    variables = variables_of_rule(len(names), by_index)
    lhs, rhs = f(*variables)
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

    return Rule(
        f.__name__,
        family,
        exact,
        roots(p),
        _matcher(f, p, len(names), exact, when, kinds, {k: n for k, n in by_index.items() if n == "bool"}),
        _doc(f),
        frozenset(tags),
        kinds,
        weight(p),
        equation,
        examples,
        p,
        f,
        names,
        dtypes,
        when,
        domain,
        _source(f),
        needs(p),
        module=f.__module__,
    )


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

    return Rewriter(_canonical_rules(), strict=True).run([v])[0]


@cache
def _canonical_rules() -> tuple[Rule, ...]:
    return tuple(r for r in all_rules("canonicalize") if OPT_IN not in r.tags)


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
