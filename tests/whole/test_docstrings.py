"""Docstrings: the first word is a noun or a verb of the field."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import symc

ROOT = Path(symc.__file__).parent
#: Words that a first line does not begin with: it says what something is or does.
QUESTIONS = {"what", "whether", "how", "where", "which", "why", "when", "who", "whose", "whom"}
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def questions(text: str) -> Iterator[str]:
    """First lines that begin with a question word."""
    for node in ast.walk(ast.parse(text)):
        said = ast.get_docstring(node) if isinstance(node, DOCUMENTED) else None
        if said and said.split()[0].strip(",.:").lower() in QUESTIONS:
            yield said.splitlines()[0]


def test_no_docstring_begins_with_a_question_word() -> None:
    found = {str(p.relative_to(ROOT)): said for p in ROOT.rglob("*.py") if (said := [*questions(p.read_text("utf-8"))])}
    assert found == {}


@pytest.mark.parametrize("text", ['"""What it is."""', 'def f():\n    """Whether it holds."""', 'class C:\n    "How."'])
def test_a_question_is_found(text: str) -> None:
    assert len([*questions(text)]) == 1
