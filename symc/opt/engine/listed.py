"""Rules that are known by name before they are read: ``rule_table`` lists symc's own, with what says where each may
start. The module of a rule is imported, and its pattern made, when the rewriter first offers it a value and all ops of
the pattern have been met.

The table is made from the rules themselves: ``python -m symc rules --table`` writes it, and a test compares it. It has
the size of every file that decides what it says; the rules of a file that differs are read at once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from symc.errors import InternalError
from symc.ir.record import fields
from symc.ir.value import Value, was_made
from symc.opt.engine.rule import Context, Make, Rule, all_rules, arrange, register_late

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
OTHERS = ("engine.rule", "engine.declare", "engine.pattern", "engine.listed")
#: What the table says of a rule, in this order.
COLUMNS = ("name", "family", "exact", "roots", "needs", "weight", "kinds", "tags", "traits", "contextual", "by_pattern",
           "keeps_kind", "ops")


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

    def __init__(self, row: tuple, module: str):
        self.__dict__.update(zip(COLUMNS, row, strict=True), module=module)
        for name in ("needs", "tags", "traits", "ops"):
            self.__dict__[name] = frozenset(self.__dict__[name])
        self.__dict__["apply"] = self._apply

    def _apply(self, v: Value, context: Context) -> Value | str | None:
        if not was_made(self.ops):
            return None
        self.read()
        return self.apply(v, context)

    def take(self, make: Make) -> Rule:
        """Its module has been imported."""
        self.__dict__["_make"] = make
        return self

    def read(self) -> None:
        """Become what the module declares."""
        row = self.__dict__
        import_module(self.module)
        if "_make" not in row:
            raise InternalError(f"{self.module} declares no rule {row['name']!r}", help="python -m symc rules --table")
        row.update(row["_make"]().__dict__)
        self.__class__ = Rule  # type: ignore[assignment]


for _name in fields(Rule):
    setattr(Listed, _name, _Late(_name))


def install() -> bool:
    """Register the rules of the table. False where it says nothing: then all modules have to be imported."""
    from symc.opt.engine import rule_table as table

    sizes = dict(_sizes())
    if any(sizes[m] != table.SIZES.get(m) for m in OTHERS):
        return False
    changed = [m for m in MODULES if sizes[m] != table.SIZES.get(m)]
    for module, rows in table.RULES:
        if module.removeprefix(PACKAGE) not in changed:
            for row in rows:
                r = Listed(row, module)
                register_late(r, module, r.take)
    if changed:
        for m in changed:
            import_module(PACKAGE + m)
        arrange([PACKAGE + m for m in MODULES])
    return True


def import_all() -> None:
    """Import every module that declares rules."""
    for module in MODULES:
        import_module(PACKAGE + module)


def _sizes() -> Iterator[tuple[str, int]]:
    here = os.path.dirname(os.path.dirname(__file__))
    for module in (*MODULES, *OTHERS):
        try:
            yield module, os.stat(os.path.join(here, *module.split(".")) + ".py").st_size
        except OSError:  # not a folder of sources, so nobody edits them
            from symc.opt.engine import rule_table

            yield module, rule_table.SIZES.get(module, 0)


def written() -> str:
    """The table, from the rules."""
    import_all()
    groups: list[tuple[str, list[str]]] = []
    for r in all_rules():
        if not r.module.startswith(PACKAGE):  # a user's
            continue
        row = [_said(getattr(r, c)) for c in COLUMNS]
        if not groups or groups[-1][0] != r.module:
            groups.append((r.module, []))
        groups[-1][1].append(f"        ({', '.join(row)}),\n")
    rules = "".join(f"    ({m!r}, (\n{''.join(rows)}    )),\n" for m, rows in groups)
    sizes = "".join(f"    {m!r}: {n},\n" for m, n in _sizes())
    return ('"""Ops at which rules start: see ``listed``. Made by ``python -m symc rules --table``, not by hand."""\n\n'
            f"# ruff: noqa: E501\n\nSIZES = {{\n{sizes}}}\nRULES: tuple = (\n{rules})\n")


def _said(x: Any) -> str:
    return repr(tuple(sorted(x))) if isinstance(x, frozenset) else repr(x)
