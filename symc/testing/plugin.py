"""The pytest plugin: collects ``.ir`` files. Each case of a file (see ``symc.testing.filecheck``) is one test.

symc itself is imported when the first file is collected, so that the plugin costs other projects nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """``*.ir`` files with a RUN line are tests."""
    if file_path.suffix == ".ir" and "// RUN:" in file_path.read_text(encoding="utf-8"):
        return IRFile.from_parent(parent, path=file_path)
    return None


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
