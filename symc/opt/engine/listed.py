"""Rules and passes that are known before they are read: a table of symc's own, with what says where each may start. The
module of a rule is imported, and its pattern made, when the rewriter first offers it a value and all ops of the pattern
have been met; that of a pass when it runs.

The table is made of all files of the optimizer when there is none of them as they are, and is kept beside Python's
bytecode.
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
from symc.opt.engine import pass_registry
from symc.opt.engine.rule import Context, Make, Rule, all_rules, register_late

#: The first modules that declare rules, in the order that rules of equal weight are tried in; others follow by name.
FIRST = tuple("""
    canonicalize decompose fold matmul.products rules.algebra rules.assumed rules.assumptions
    rules.collect rules.composed rules.concats rules.debug rules.edges rules.error_function rules.exponentials
    rules.inverses rules.structure rules.factors rules.hyperbolic rules.slices rules.reads rules.indexing
    rules.lengths rules.linalg rules.logs rules.logsumexp rules.lookups rules.moments
    rules.packing rules.movement_hoisting rules.pooling rules.powers rules.differences rules.series
    rules.quotients rules.reductions rules.remat rules.select rules.shapes rules.sinking rules.softmax
    rules.writes rules.sparse rules.inverse_functions
""".split())
PACKAGE = "symc.opt."
HERE = os.path.dirname(os.path.dirname(__file__))
#: The folders of rules and passes; "" is the package itself.
FOLDERS = ("", "rules", "loops", "matmul", "fusion", "facts")
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
    setattr(Listed, _name, Listed._apply if _name == "apply" else _Late(_name))


def install() -> None:
    """Register the rules and passes of the table; without one, read all files and make it."""
    stamp = _stamp()
    kept = _kept(stamp)
    if kept is None:
        from pkgutil import iter_modules  # takes as long as the table does

        found = {f"{folder}.{m.name}".lstrip(".") for folder in FOLDERS
                 for m in iter_modules([os.path.join(HERE, folder)]) if not m.ispkg}
        for module in (*FIRST, *sorted(found.difference(FIRST))):
            import_module(PACKAGE + module)
        _keep(stamp)
        return
    rules, passes = kept
    for row in rules:
        r = Listed(row)
        register_late(r, r.module, r.take)
    for stated in passes:
        pass_registry.take_row(stated)


def place() -> str:
    """The file of the table."""
    return cache_from_source(__file__).removesuffix(".pyc") + ".rules"


def _stamp() -> tuple[tuple[str, int, int], ...]:
    """Names, sizes and times of the files that decide what the table says; none where there are no files."""
    found = []
    for folder in (*FOLDERS, "engine"):
        try:
            with os.scandir(os.path.join(HERE, folder)) as entries:
                found += [(e.path, (s := e.stat()).st_size, s.st_mtime_ns) for e in entries if e.name.endswith(".py")]
        except OSError:
            return ()
    return tuple(sorted(found))


def _kept(stamp: tuple[Any, ...]) -> Any:
    try:
        with open(place(), "rb") as f:
            of, *rows = marshal.loads(f.read())  # which takes an eighth of ``load``
    except (OSError, EOFError, ValueError, TypeError):  # no file, or not a whole one
        return None
    return rows if stamp and of == stamp else None


def _keep(stamp: tuple[Any, ...]) -> None:
    """Write the table, unless that is not possible."""
    rows = [tuple(getattr(r, c) for c in COLUMNS) for r in all_rules()]
    own = f"{place()}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(own), exist_ok=True)
        with open(own, "wb") as f:
            marshal.dump((stamp, rows, pass_registry.rows()), f)
        os.replace(own, place())
    except OSError:
        pass


install()
