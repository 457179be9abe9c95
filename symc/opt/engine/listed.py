"""Rules that are known by name before they are read: a table of symc's own, with what says where each may start. The
module of a rule is imported, and its pattern made, when the rewriter first offers it a value and all ops of the pattern
have been met.

The table is made of the rules when there is none of the files as they are, and is kept beside Python's bytecode.
"""

from __future__ import annotations

import marshal
import os
from importlib import import_module
from importlib.util import cache_from_source
from typing import Any

from symc.errors import InternalError
from symc.ir.record import fields
from symc.ir.value import Value, was_made
from symc.opt.engine.rule import Context, Make, Rule, all_rules, register_late

#: The modules that declare rules, in the order that rules of equal weight are tried in.
MODULES = tuple("""
    canonicalize decompose fold matmul.products rules.algebra rules.assumed rules.assumptions rules.branches
    rules.collect rules.composed rules.concats rules.debug rules.edges rules.error_function rules.exponentials
    rules.inverses rules.structure rules.factors rules.hyperbolic rules.slices rules.reads rules.indexing
    rules.lengths rules.linalg rules.logic rules.logs rules.logsumexp rules.lookups rules.moments
    rules.packing rules.movement_hoisting rules.pooling rules.powers rules.differences rules.series
    rules.quotients rules.reductions rules.remat rules.select rules.shapes rules.sinking rules.softmax
    rules.writes rules.sparse rules.inverse_functions
""".split())
PACKAGE = "symc.opt."
#: What else decides where rules may start.
OTHERS = ("engine.rule", "engine.declare", "engine.pattern", "engine.terms", "engine.examples", "engine.listed")
#: What the table says of a rule, in this order.
COLUMNS = ("name", "module", "family", "exact", "roots", "needs", "weight", "kinds", "tags", "traits", "contextual",
           "by_pattern", "keeps_kind", "ops")


class _Late:
    """A field that the table does not say: the rule is read."""

    def __init__(self, name: str):
        self.name = name

    def __get__(self, listed: Any, cls: type) -> Any:
        if listed is None:
            return self
        listed.read()
        return getattr(listed, self.name)


class Listed(Rule):
    """A rule of the table. It is an ordinary one once it has been read."""

    def __init__(self, row: tuple):
        self.__dict__.update(zip(COLUMNS, row, strict=True))
        for name in ("needs", "tags", "traits", "ops"):
            self.__dict__[name] = frozenset(self.__dict__[name])
        self.__dict__["apply"] = self._apply

    def _apply(self, v: Value, context: Context) -> Value | str | None:
        if not was_made(self.ops):
            return None
        self.read()
        return self.apply(v, context)

    def take(self, make: Make) -> Rule:
        """Take what makes it: its module has been imported."""
        self.__dict__["_make"] = make
        return self

    def read(self) -> None:
        """Become what the module declares."""
        row = self.__dict__
        import_module(self.module)
        if "_make" not in row:
            raise InternalError(f"{self.module} declares no rule {row['name']!r}")
        row.update(row["_make"]().__dict__)
        self.__class__ = Rule  # type: ignore[assignment]


for _name in fields(Rule):
    setattr(Listed, _name, _Late(_name))


def install() -> None:
    """Register the rules of the table; without one, read all rules and make it."""
    stamp = _stamp()
    rows = _kept(stamp)
    if rows is None:
        for module in MODULES:
            import_module(PACKAGE + module)
        _keep(stamp)
        return
    for row in rows:
        r = Listed(row)
        register_late(r, r.module, r.take)


def place() -> str:
    """The file of the table."""
    return cache_from_source(__file__).removesuffix(".pyc") + ".rules"


def _stamp() -> tuple[Any, ...] | None:
    """Sizes and times of the files that decide what the table says; None where there are none."""
    here = os.path.dirname(os.path.dirname(__file__))
    try:
        found = [os.stat(os.path.join(here, *m.split(".")) + ".py") for m in (*MODULES, *OTHERS)]
    except OSError:
        return None
    return tuple((s.st_size, s.st_mtime_ns) for s in found)


def _kept(stamp: tuple[Any, ...] | None) -> Any:
    try:
        with open(place(), "rb") as f:
            of, rows = marshal.load(f)
    except (OSError, EOFError, ValueError, TypeError):  # no file, or not a whole one
        return None
    return rows if stamp is not None and of == stamp else None


def _keep(stamp: tuple[Any, ...] | None) -> None:
    """Write the table, unless that is not possible."""
    rows = [tuple(_plain(getattr(r, c)) for c in COLUMNS) for r in all_rules()]
    own = f"{place()}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(own), exist_ok=True)
        with open(own, "wb") as f:
            marshal.dump((stamp, rows), f)
        os.replace(own, place())
    except OSError:
        pass


def _plain(x: Any) -> Any:
    return tuple(sorted(x)) if isinstance(x, frozenset) else x


install()
