"""Docstrings: the first word is a noun or a verb of the field."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import symc

ROOT, FOLDERS = Path(symc.__file__).parents[1], ("symc", "benchmarks", "examples")
#: Words that a first line does not begin with: it says what something is or does, and names it.
QUESTIONS = {"what", "whether", "how", "where", "which", "why", "when", "who", "whose", "whom"}
POINTERS = {"it", "its", "they", "them", "their", "this", "that", "these", "those", "there", "here"}
FRAGMENTS = {"of", "by", "in", "on", "at", "to", "into", "so", "and", "or", "but", "not"}
#: The docstring of a rule says why it is there, below its name and its equation.
REASONS = {"rule", "rewrite"}
#: A statement that is a string and begins with one of them. Only files that have one are parsed: all take seconds.
SUSPECT = re.compile(rf'(?:^|[:;])\s*[ru]?["\']+[\s\\,.:]*(?:{"|".join(QUESTIONS | POINTERS | FRAGMENTS)})\b',
                     re.IGNORECASE | re.MULTILINE)
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def is_rule(node: ast.AST) -> bool:
    calls = (d.func if isinstance(d, ast.Call) else d for d in getattr(node, "decorator_list", ()))
    return any(isinstance(f, ast.Name) and f.id in REASONS for f in calls)


def nameless(text: str) -> Iterator[str]:
    """First lines that begin with a word which names nothing."""
    for node in ast.walk(ast.parse(text)) if SUSPECT.search(text) else ():
        said = ast.get_docstring(node) if isinstance(node, DOCUMENTED) and not is_rule(node) else None
        if said and said.split()[0].strip(",.:").lower() in QUESTIONS | POINTERS | FRAGMENTS:
            yield said.splitlines()[0]


def test_no_docstring_begins_with_a_word_that_names_nothing() -> None:
    files = [p for folder in FOLDERS for p in (ROOT / folder).rglob("*.py") if ".venvs" not in p.parts]
    found = {str(p.relative_to(ROOT)): said for p in files if (said := [*nameless(p.read_text("utf-8"))])}
    assert found == {}


@pytest.mark.parametrize("text", ['"""What it is."""', 'def f():\n    """Whether it holds."""', 'class C:\n    "How."',
                                  '"""Of the plan."""', 'def f():\n    """Those of them."""', '"""Its lines."""'])
def test_such_a_word_is_found(text: str) -> None:
    assert len([*nameless(text)]) == 1
