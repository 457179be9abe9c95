"""The site of documents, without building it: what `make docs` would miss is seen here in a second."""

import doctest
import importlib
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

import symc as sc

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def parts():
    """The modules that make the site."""
    sys.path.insert(0, str(DOCS / "_ext"))
    try:
        yield {n: importlib.import_module(n) for n in ("site_public", "site_examples", "stages_picture")}
    finally:
        sys.path.remove(str(DOCS / "_ext"))


def test_every_public_name_has_a_place_in_the_reference(parts):
    """Once: in the marker of one page of docs/reference."""
    places = Counter(parts["site_public"].documented())
    assert sorted(set(parts["site_public"].everything()) - set(places)) == []
    assert sorted(set(places) - set(parts["site_public"].everything())) == []
    assert [n for n, times in places.items() if times > 1] == []


def test_every_page_has_a_row_in_the_list_of_documents():
    text = (DOCS / "README.md").read_text("utf-8")
    assert [p.name for p in sorted(DOCS.glob("*.md")) if f"({p.name})" not in text and p.name != "README.md"] == []


def test_every_public_name_has_an_example(parts):
    """In docs/_ext/examples, or in its docstring; and there are none of names that are gone."""
    public, written = parts["site_public"], parts["site_examples"].everything()
    assert sorted(set(public.everything()) - set(written) - set(in_docstrings(public))) == []
    assert sorted(set(written) - set(public.everything())) == []
    assert sorted(set(written) & set(in_docstrings(public))) == []


def in_docstrings(public) -> dict[str, str]:
    """Docstrings of public names that have an example."""
    found = {f"{room}.{n}": getattr(item, "__doc__", "") or "" for room, names in public.rooms().items()
             for n, item in names.items()}
    return {n: doc for n, doc in found.items() if ">>>" in doc}


def test_examples_in_docstrings_print_what_they_say(parts, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = in_docstrings(parts["site_public"])
    assert len(found) > 20
    for name, doc in found.items():
        test = doctest.DocTestParser().get_doctest(doc, parts["site_examples"].scope(), name, None, None)
        said: list[str] = []
        assert not doctest.DocTestRunner(verbose=False).run(test, out=said.append).failed, "".join(said)


def test_an_example_is_run_and_shown_as_a_session(parts):
    run = parts["site_examples"].run
    assert run("x = sc.vector('x')\nsc.compile(x + 1)([1., 2.])") == (
        ">>> x = sc.vector('x')\n>>> sc.compile(x + 1)([1., 2.])\narray([2., 3.])")
    assert run("for k in range(2):\n    print(k)") == ">>> for k in range(2):\n...     print(k)\n0\n1"
    with pytest.raises(sc.ShapeError):
        run("sc.input('x', shape=(2,)) + sc.input('y', shape=(3,))")


def test_an_example_is_what_its_entry_says(parts):
    read = parts["site_examples"]._read
    [(name, example)] = read("det(A) ; A=[[2., 0.], [0., 3.]]", "sc.linalg")
    assert name == "sc.linalg.det" and example.values == {"A": [[2.0, 0.0], [0.0, 3.0]]}
    assert example.code == 'A = sc.matrix("A")\nsc.compile(sc.linalg.det(A))(A=[[2., 0.], [0., 3.]])'
    assert [n for n, _ in read("sin cos: {}(x) ; x=[0.]", "sc")] == ["sc.sin", "sc.cos"]
    assert "shape=(2,)" in read("cross(x, x) ;; x=[1., 0.]", "sc")[0][1].code
    assert read("pi: {}", "sc")[0][1].code == "sc.pi"


def test_every_page_can_be_reached():
    """From a table of contents, or as one of those that none names."""
    lists = [DOCS / "index.md", *DOCS.glob("*/index.md"), DOCS / "coming-from.md"]
    named = {(page.parent / line).relative_to(DOCS).as_posix() for page in lists
             for block in re.findall(r"```{toctree}\n(.*?)```", page.read_text("utf-8"), re.S)
             for line in re.findall(r"^[\w/-]+$", block, re.M)}
    pages = {p.relative_to(DOCS).with_suffix("").as_posix() for p in DOCS.rglob("*.md")} - {"index", "README"}
    assert sorted(named - pages) == []
    assert sorted(p for p in pages - named if "/" in p) == []
    assert "<!-- pages that are nowhere else -->" in (DOCS / "index.md").read_text("utf-8")


def test_the_picture_is_what_runs(parts):
    """python docs/_ext/stages_picture.py renews it."""
    picture = parts["stages_picture"]
    for name, colors in picture.PAPERS.items():
        assert (DOCS / "pictures" / f"stages-{name}.svg").read_text("utf-8") == picture.draw(colors)


def test_ci_builds_the_site():
    assert "make docs" in (ROOT / ".ci" / "run").read_text("utf-8")
    assert "-W --keep-going docs" in (ROOT / "Makefile").read_text("utf-8")
