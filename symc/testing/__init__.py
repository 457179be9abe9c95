"""Tools for tests, symc's own and users': assertions about compiled functions, checks of rules and passes, FileCheck
for IR, random programs.

The pytest plugin is ``symc.testing.plugin``; it collects ``.ir`` files and has fixtures wherever symc is installed.
docs/testing.md shows how all of it is used.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
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
    "emulated_cuda",
]


def emulated_cuda(checked: bool = True) -> AbstractContextManager[None]:
    """Let "cuda" and "cuda:1" be emulated devices, in which the host runs every thread of every kernel, for what is
    compiled inside. ``checked``: races, accesses outside of arrays and the like are errors (and it takes longer). It
    needs g++, and no GPU. The environment variable ``SYMC_CUDA=emulated`` does the same for a whole process."""
    from symc.runtime.cuda.devices import devices_from
    from symc.runtime.emulator import EmulatedDevice

    return devices_from(lambda index: EmulatedDevice(index, checked))


def dry_cuda() -> AbstractContextManager[None]:
    """Let "cuda" be a device that only plans, for what is compiled inside: ``f.launches(n=...)`` says what would be
    launched, at any size, and a call is an error. ``SYMC_CUDA=dry`` does the same for a whole process."""
    from symc.runtime.cuda.devices import devices_from
    from symc.runtime.cuda.dry import dry_device

    return devices_from(dry_device)


def check_rule(rule: Any) -> None:
    """Every claim of a rewrite rule (see ``symc.testing.rule_checks``). ``rule`` is a Rule or a rule's name."""
    from symc.opt import Rule, lookup_rule
    from symc.testing.rule_checks import check_rule as check

    check(rule if isinstance(rule, Rule) else lookup_rule(rule))
