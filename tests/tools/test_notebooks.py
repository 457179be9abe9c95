"""Displays of values in notebooks, and the notebooks of the gallery, run cell by cell."""

import json
import pickle
import pydoc
import sys
import time
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import symc as sc
from symc import notebook

GALLERY = sorted((Path(__file__).resolve().parents[2] / "examples" / "notebooks").glob("*.ipynb"))
#: A name that would begin an element.
EVIL = "<img src=x onerror=alert(1)>"


class Checked(HTMLParser):
    """Elements of HTML that must be closed in order, with no attribute but style."""

    def __init__(self, text: str):
        super().__init__()
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        assert tag in ("div", "table", "tr", "td", "th", "pre", "details", "summary", "b", "span"), tag
        assert [k for k, _ in attrs if k != "style"] == []
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def shown():
    """Everything that shows itself."""
    x, w = sc.input(EVIL, "float64", ("n", 3)), sc.shared(np.ones(3), "w")
    y = sc.log(sc.exp(x @ w) + 1)
    f = sc.compile(sc.sum(y), [x], updates={w: w * 2}, name=EVIL)
    variable, z = sc.Variable(EVIL), sc.scalar("z")
    traced = sc.jit(lambda a: a * 2)
    traced(np.ones(3))
    profile = f.profile(np.ones((4, 3)))
    reference = sc.compile(y, [x], mode="reference")
    return {"input": x, "value": y, "state": w, "constant": sc.asarray([1.0, 2.0]), "function": f, "variable": variable,
            "deferred": sc.compile(variable * 2), "jit": traced, "reference": reference, "plan": f.plan,
            "source": f.source, "dump": f.dump(), "kernels": f.kernels, "explain": f.explain(), "y": f.explain(y),
            "why": f.why_not("gemm"), "profile": profile, "lines": profile.by_line(), "compile": f.compile_profile,
            "memory": f.memory(n=4), "diff": f.diff("input"), "same": sc.diff(f, f), "no lint": sc.lint(y),
            "lint": sc.lint(sc.tan(z) - sc.sin(z)), "accuracy": reference.accuracy()}


def test_everything_shows_itself_as_html_that_is_closed_escaped_and_short(shown):
    for name, value in shown.items():
        bundle = value._repr_mimebundle_()
        assert bundle["text/plain"] == repr(value), name
        Checked(bundle["text/html"])
        assert "object at 0x" not in bundle["text/html"] and len(bundle["text/html"]) < 50_000, name


def test_displays_say_what_is_there(shown):
    html = {k: v._repr_html_() for k, v in shown.items()}
    assert "test_notebooks.py" in html["value"] and "float64" in html["value"]
    assert "state" in html["function"] and "IR" in html["function"]
    assert "launches" in html["kernels"] and "softplus" in html["kernels"]
    assert "peak" in html["memory"] and "background:" in html["diff"] and "limits" in html["profile"]
    assert "1 signature" in html["jit"] and "cancel" in html["lint"]


def test_texts_are_still_strings(shown):
    plan = shown["plan"]
    assert isinstance(plan, str) and plan == str(plan) and repr(plan) == repr(str.__str__(plan))
    assert plan.title() == str(plan).title()
    assert pickle.loads(pickle.dumps(plan)) == plan and json.loads(json.dumps(plan)) == plan
    assert isinstance(shown["kernels"], list) and sc.parse(shown["dump"]).name


def test_long_texts_and_tables_are_cut_with_a_note():
    dump = notebook.Listing.of("\n".join(f"%{k} = add" for k in range(10_000)), "dump")._repr_html_()
    assert len(dump) < 20_000 and "10,000 lines" in dump and "9,400 more lines" in dump and dump.startswith("<details>")
    rows = notebook.table(["a"], [(k,) for k in range(1000)])
    assert len(rows) < 20_000 and "940 more rows" in rows
    assert len(notebook.text("x" * 10**6)) < 1000


def test_a_display_does_not_raise():
    class Broken(notebook.Shown):
        def __str__(self):
            raise RuntimeError

        __repr__ = object.__repr__

    assert "Broken object" in Broken()._repr_html_()


def test_help_says_how_a_function_is_called(shown):
    x, k = sc.input("x", "float32", ("n", 2)), sc.input("k", "int64", ())
    f = sc.compile(sc.sum(x) * k, [x, k], name="scaled")
    text = pydoc.render_doc(f, renderer=pydoc.plaintext)
    assert "scaled(x, k)" in text and "x: f32[n, 2]" in text and "f64" in text.partition("Returns:")[2]
    assert eval(text.strip().splitlines()[-1].strip(), {"np": np, "scaled": f}) == 4
    assert f.__name__ == "scaled" and str(f.__signature__).startswith("(x, k")
    assert "A compiled function" in type(f).__doc__ and type(f).__name__ == "CompiledFunction"
    chosen = sc.compile(x * 2, [x], name="twice", specialize={"n": [2]})
    assert chosen.__doc__.startswith("twice(x)") and "variants" in type(chosen).__doc__.lower()


class Bar:
    """A bar of tqdm's that remembers."""

    made: list = []

    def __init__(self, leave, **options):
        self.options, self.said, self.n, self.closed = options, [], 0, False
        Bar.made.append(self)

    def set_description_str(self, text, refresh=True):
        self.said.append(text)

    set_postfix_str = set_description_str

    def update(self, n=1):
        self.n += n

    def close(self):
        self.closed = True


@pytest.fixture
def bars(monkeypatch):
    """Somebody looks on, and time flies."""
    monkeypatch.setattr("tqdm.auto.tqdm", Bar)
    monkeypatch.setattr(Bar, "made", [])
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    return Bar.made


def test_what_compiles_long_has_a_bar(bars, monkeypatch):
    monkeypatch.setattr(notebook.CompileProgress, "AFTER", -1.0)
    x = sc.vector("x")
    sc.compile(sc.exp(x) * 3, [x], name="slow")
    (bar,) = bars
    assert bar.closed and bar.n > 3 and any("compiling slow: " in s for s in bar.said)


def test_what_compiles_fast_has_none(bars):
    progress, asked = notebook.CompileProgress("f"), time.perf_counter()
    progress("optimize", "f")
    assert bars == [] or time.perf_counter() > asked + notebook.CompileProgress.AFTER
    progress.close()


def test_nobody_looks_on(monkeypatch):
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    monkeypatch.setattr("sys.stderr", open(__file__))  # noqa: SIM115 - no terminal
    assert notebook.progress_bar(total=3) is None


def test_fit_has_a_bar_where_somebody_looks_on(bars, capsys):
    fit = lambda progress: sc.optim.fit(lambda x: np.float64(x.sum()), np.ones((8, 1)), epochs=3, progress=progress)
    fit(True)
    (bar,) = bars
    assert bar.options["total"] == bar.n == 3 and bar.closed and "loss" in bar.said[0]
    assert capsys.readouterr().out.count("epoch") == 1
    lines = []
    fit(lines.append)
    assert len(lines) == 3 and len(bars) == 1


@pytest.mark.long
@pytest.mark.parametrize("path", GALLERY, ids=lambda p: p.stem)
def test_the_gallery_runs(path, tmp_path, monkeypatch):
    """Cell by cell, in IPython as a kernel does it; what a cell ends with has a display."""
    from IPython.core.interactiveshell import InteractiveShell

    monkeypatch.chdir(tmp_path)
    shell = InteractiveShell(user_module=None)
    shell.history_manager.enabled = False
    book, displays = json.loads(path.read_text("utf-8")), 0
    assert book["nbformat"] == 4
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            result = shell.run_cell("".join(cell["source"]))
            result.raise_error()
            data, _ = shell.display_formatter.format(result.result) if result.result is not None else ({}, {})
            displays += "text/html" in data
    assert displays >= 1


def test_the_gallery_is_there():
    assert len(GALLERY) == 3
