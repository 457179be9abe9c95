"""Tools for tests, symc's own and users': assertions about compiled functions, checks of rules and passes, FileCheck
for IR, random programs.

The pytest plugin is ``symc.testing.plugin``; it collects ``.ir`` files and has fixtures wherever symc is installed.
docs/testing.md shows how all of it is used.
"""

from __future__ import annotations

from typing import Any

from symc.testing.assertions import (
    assert_calls,
    assert_dump,
    assert_fires,
    assert_in_place,
    assert_kernels,
    assert_no_alloc,
    assert_not_fires,
    assert_rewrites,
    check_pass,
)
from symc.testing.filecheck import CheckError, check_text

__all__ = [
    "CheckError",
    "assert_calls",
    "assert_dump",
    "assert_fires",
    "assert_in_place",
    "assert_kernels",
    "assert_no_alloc",
    "assert_not_fires",
    "assert_rewrites",
    "check_pass",
    "check_rule",
    "check_text",
]


def check_rule(rule: Any) -> None:
    """Every claim of a rewrite rule (see ``symc.testing.rules``). ``rule`` is a Rule or a rule's name."""
    from symc.opt import Rule, lookup_rule
    from symc.testing.rules import check_rule as check

    check(rule if isinstance(rule, Rule) else lookup_rule(rule))
