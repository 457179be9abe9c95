"""The pytest plugin: collects ``.ir`` files, and has the assertions of ``symc.testing`` as fixtures.

Each case of a file (see ``symc.testing.filecheck``) is one test. What is needed for that is imported when the first
file is collected or the first fixture is asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """``*.ir`` files with a RUN line are tests."""
    if file_path.suffix == ".ir" and "// RUN:" in file_path.read_text(encoding="utf-8"):
        return IRFile.from_parent(parent, path=file_path)
    return None


def _assertion(name: str) -> Any:
    def fixture() -> Any:
        return getattr(importlib.import_module("symc.testing"), name)

    fixture.__doc__ = f"``symc.testing.{name}``."
    return pytest.fixture(name=name)(fixture)


(assert_calls, assert_dump, assert_fires, assert_in_place, assert_kernels, assert_no_alloc, assert_not_fires,
 assert_rewrites, check_pass, check_rule) = map(_assertion, (
    "assert_calls", "assert_dump", "assert_fires", "assert_in_place", "assert_kernels", "assert_no_alloc",
    "assert_not_fires", "assert_rewrites", "check_pass", "check_rule"))  # fmt: skip


@pytest.fixture
def own_rules() -> Iterator[None]:
    """Rules and passes that the test registers are gone after it."""
    from symc.opt import all_passes, temporary_rules, unregister_pass

    before = {p.name for p in all_passes()}
    with temporary_rules():
        yield
    for p in all_passes():
        if p.name not in before:
            unregister_pass(p.name)


class IRFile(pytest.File):
    """A file of cases."""

    def collect(self) -> Iterator[pytest.Item]:
        from symc.testing.filecheck import cases

        for k, case in enumerate(cases(self.path.read_text(encoding="utf-8"))):
            yield IRItem.from_parent(self, name=_name(case.text, k), case=case)


def _name(text: str, k: int) -> str:
    import re

    m = re.search(r"func @(\w+)", text)
    return m[1] if m else f"case{k}"


class IRItem(pytest.Item):
    """One case."""

    def __init__(self, *, case: Any, **kwargs: Any):
        super().__init__(**kwargs)
        self.case = case

    def runtest(self) -> None:
        from symc.testing.filecheck import check_case

        check_case(self.case)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        from symc.testing.filecheck import CheckError

        return str(excinfo.value) if isinstance(excinfo.value, CheckError) else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.case.line - 1, self.name
