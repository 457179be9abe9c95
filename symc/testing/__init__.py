"""Tools for tests, symc's own and users': FileCheck for IR, checks of rules, random programs, and a few assertions.

The pytest plugin is ``symc.testing.plugin``; it collects ``.ir`` files wherever symc is installed.
"""

from __future__ import annotations

import re
from typing import Any

from symc.testing.filecheck import CheckError, check_text

__all__ = ["CheckError", "assert_dump", "assert_kernels", "assert_no_alloc", "check_rule", "check_text"]


def assert_dump(f: Any, checks: str, stage: str | None = None) -> None:
    """The text of a compiled function (or IR function) has what the CHECK lines in ``checks`` want."""
    check_text(f.dump(stage=stage) if hasattr(f, "dump") else str(f), checks, getattr(f, "name", ""))


def assert_kernels(f: Any, count: int) -> None:
    """A compiled function runs exactly this many generated kernels."""
    kernels = list(f.kernels)
    if len(kernels) != count:
        raise CheckError(
            f"{getattr(f, 'name', f)} has {len(kernels)} kernels, not {count}:\n" + "\n".join(map(str, kernels))
        )


def assert_no_alloc(f: Any) -> None:
    """The plan of a compiled function allocates nothing but results."""
    plan = str(f.plan)
    found = re.findall(r"^\s*alloc (?!.*\(result\)).*$", plan, re.M)
    if found:
        raise CheckError(f"{getattr(f, 'name', f)} allocates:\n" + "\n".join(found) + f"\nits plan is\n{plan}")


def check_rule(rule: Any) -> None:
    """Every claim of a rewrite rule (see ``symc.testing.rules``). ``rule`` is a Rule or a rule's name."""
    from symc.opt import Rule, lookup_rule
    from symc.testing.rules import check_rule as check

    check(rule if isinstance(rule, Rule) else lookup_rule(rule))
