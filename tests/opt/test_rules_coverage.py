"""The page on the rewrites of PyTensor says nothing that is not so."""

import re
from pathlib import Path

import pytest

from symc.ir.op import all_ops
from symc.opt import all_passes, all_rules

PAGE = Path(__file__).parents[2] / "docs" / "rules-coverage.md"
ROW = re.compile(r"^\| `(\S+)` \| (.*) \|$", re.M)
NAMED = re.compile(r"\b(rule|op|pass)(?:e?s)? ((?:`\w+`(?:, )?)+)")
ANSWERS = ("rule ", "rules ", "op ", "ops ", "pass ", "passes ", "form: ", "none needed: ", "not covered: ")


def rows():
    return ROW.findall(PAGE.read_text())


def test_every_rewrite_has_one_answer():
    names = [name for name, _ in rows()]
    assert len(names) == len(set(names)) == 313
    for name, answer in rows():
        assert answer.startswith(ANSWERS) and answer.rstrip(": ") == answer, f"{name}: {answer}"
        if answer.startswith(ANSWERS[:6]):
            assert NAMED.match(answer), f"{name}: {answer}"


@pytest.mark.parametrize("kind", ["rule", "op", "pass"])
def test_what_is_named_exists(kind):
    known = {"rule": all_rules, "op": all_ops, "pass": all_passes}[kind]
    there = {x.name for x in known()}
    seen = {}
    for name, answer in rows():
        for what, listed in NAMED.findall(answer):
            if what == kind:
                for x in re.findall(r"`(\w+)`", listed):
                    seen.setdefault(x, name)
    missing = {x: name for x, name in seen.items() if x not in there}
    assert not missing
    assert len(seen) > 8


def test_code_that_is_named_exists():
    for path in re.findall(r"`([a-z_/]+\.py)`", PAGE.read_text()):
        assert any((PAGE.parent.parent / "symc" / folder / path).exists() for folder in ("", "opt", "opt/matmul")), path
