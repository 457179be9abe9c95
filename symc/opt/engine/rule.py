"""Rules: what they are, and the registry of all of them by family. ``declare`` makes them.

Two kinds, one record. ``@rule`` states an equation with the op builders; ``@rewrite`` is a function on a value for what
an equation cannot say (axes, permutations, any number of operands). Both claim whether they are exact, bit for bit.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from typing import Any, Protocol

from symc.errors import PipelineError, did_you_mean
from symc.ir import extensions
from symc.ir.record import dataclass, field
from symc.ir.value import Value
from symc.opt.engine.pattern import Pattern, keeps_kind, ops_of
from symc.opt.facts.analysis import Analysis

#: A rewrite of ``ANY`` is offered every value.
ANY = "*"
#: Rules with this tag run only when a pipeline asks for them (``+name`` or ``+tag``).
OPT_IN = "opt-in"
#: Of a code object: it takes any number of arguments.
VARIABLE = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


class Context(Protocol):
    """Questions that a rule may ask the driver. ``facts(v)``: what is known of the numbers in ``v``."""

    @property
    def facts(self) -> Analysis: ...

    def single_use(self, v: Value) -> bool: ...

    def ends_chain(self, v: Value) -> bool: ...

    def present(self, v: Value) -> bool: ...

    def sliced_apart(self, v: Value) -> bool: ...


def works_once(v: Value, context: Context) -> bool:
    """True for work on elements, one by one, of which there is one user."""
    return bool("elementwise" in v.op.traits and v.operands and not v.regions and context.single_use(v))


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
        """The equation as text; written when it is first asked for."""
        return self.says if isinstance(self.says, str) else self.says()

    @cached_property
    def by_pattern(self) -> bool:
        """True if it is an equation: a pattern and what is put in its place."""
        return self.pattern is not None

    @cached_property
    def ops(self) -> frozenset[str]:
        """The names of ops that must be there, but for sums and products."""
        return self.met if self.pattern is None else ops_of(self.pattern)

    @cached_property
    def keeps_kind(self) -> bool:
        """True if what its pattern matches has the dtype kind of what its variables are."""
        return self.pattern is not None and keeps_kind(self.pattern)

    def __repr__(self) -> str:
        return f"<rule {self.name}>"

    def holds(self, bound: Sequence[Value | None], facts: Analysis) -> bool:
        """True if the side condition holds of matched values."""
        return self.when is None or bool(self.when(*bound, facts=facts) if asks_facts(self.when) else self.when(*bound))

    def named(self, names: Iterable[str]) -> bool:
        """True if the rule has one of these names, tags or families."""
        names = set(names)
        return self.name in names or self.family in names or bool(self.tags & names)


def asks_facts(when: Callable | None) -> bool:
    """True if a side condition takes ``facts``: what is known of values."""
    return when is not None and "facts" in parameters(when)


def parameters(f: Callable) -> list[str]:
    """The names of a function's arguments. (``inspect.signature`` takes long, and there are many rules.)"""
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
    """The answer of ``find``, found once for the rules that are registered."""
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
        canonical_rules.cache_clear()
    return r


def register_late(r: Rule, module: str, take: Callable[[Make], Rule]) -> None:
    """Add a rule of symc's own of which only some is known: ``take`` gets what makes it when ``module`` declares it."""
    _awaited[module, r.name] = take
    _rules[r.name] = r


def declared(f: Callable, make: Make) -> Rule:
    take = _awaited.pop((f.__module__, f.__name__), None)
    return register(make()) if take is None else take(make)


def unregister(name: str) -> None:
    """Take a rule out."""
    if name not in _rules:
        raise PipelineError(f"no rule is called {name!r}", help=did_you_mean(name, _rules))
    extensions.note_removal("rule", name)
    del _rules[name]
    _answers.clear()
    canonical_rules.cache_clear()


def all_rules(*families: str) -> list[Rule]:
    """Every rule, or those of some families, in the order of registration."""
    return [r for r in _rules.values() if not families or r.family in families]


@cache
def canonical_rules() -> tuple[Rule, ...]:
    """The rules that every pattern is compared after."""
    return tuple(r for r in all_rules("canonicalize") if OPT_IN not in r.tags)


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
        canonical_rules.cache_clear()
