"""The explorer's page: its data says what the function is, everything in it is linked, and names are text."""

import json
import re
import subprocess
import threading
import urllib.error
import urllib.request
from html.parser import HTMLParser
from pathlib import Path
from xml.dom import minidom

import numpy as np
import pytest

import symc as sc
from symc.__main__ import main
from symc.opt import optimize
from symc.tools import explorer, inspection
from symc.tools.explorer.model import model, model_of_ir
from symc.tools.explorer.page import page as page_text
from symc.tools.explorer.server import server_of

#: A user's module.
USER = "import symc as sc\nx = sc.vector('x')\ntwice = sc.compile(x * 2, name='twice')\n"
#: A name that would end a script, an attribute and an element.
EVIL = "</script><img src=x onerror=alert(1)>\"'&\u2028"


def data_of(page: str) -> dict:
    """The model in a page."""
    return json.loads(re.search(r'<script type="application/json" id="model">(.*?)</script>', page, re.S)[1])


@pytest.fixture(scope="module")
def step():
    """A step with a product, kernels that gradients share, states, and an argument."""
    x, w = sc.input("x", "float64", ("n", 3)), sc.shared(np.full((3, 2), 0.1), "w")
    hidden = sc.log(sc.exp(x @ w) + 1)
    loss = sc.sum(hidden * hidden)
    return sc.compile(loss, [x], updates={w: w - 0.1 * sc.grad(loss, w)}, name="step")


@pytest.fixture(scope="module")
def page(step):
    return inspection.html(step, (np.ones((4, 3)),))


@pytest.fixture(scope="module")
def loops():
    """A loop with a branch inside it."""
    xs, w = sc.input("xs", "float64", ("t", 40)), sc.input("w", "float64", (40, 40))
    def body(h, r):
        return sc.cond(sc.sum(h) > 0, lambda: sc.tanh(h @ w) + r, lambda: r), None
    return sc.compile(sc.scan(body, xs[0], xs)[0], [xs, w], name=EVIL)


def written(loc: dict) -> str:
    """A line as dumps write it."""
    return f"{loc['role']} {loc['short']}".strip()


def text_of(m: dict, region: int, indent: str = "  ") -> list[str]:
    """Lines of a region's text, written from the tables as the page writes them."""
    r = m["regions"][region]
    names = dict(zip(r["params"], r["names"])) | dict(zip(r["values"], r["left"]))
    out = []
    for v, left, lines in zip(r["values"], r["left"], r["lines"]):
        x = m["values"][v]
        said = []
        for o in x["in"]:
            y = m["values"][o]
            part = names[y["in"][0]].split(", ")[y["get"]] if "get" in y else names.get(o)
            said.append(y.get("number", part))
        locs = dict.fromkeys(written(m["locs"][n]) for n in lines)
        end = "  // " + ", ".join(locs) if locs else ""
        attrs = " " + x["attrs"] if "attrs" in x else ""
        line = f"{indent}{left} = {x['op']}{' ' * bool(said)}{', '.join(said)}{attrs} : {x['type']}"
        if "regions" not in x:
            out.append(line + end)
            continue
        for k, q in enumerate(x["regions"]):
            inner = m["regions"][q]
            types = [f"{n}: {m['values'][p]['type']}" for n, p in zip(inner["names"], inner["params"])]
            out += [line + " {" + end if k == 0 else indent + "} {", f"{indent}^({', '.join(types)}):",
                    *text_of(m, q, indent + "  "), f"{indent}  yield {', '.join(inner['yields'])}"]
        out.append(indent + "}")
    return out


def test_the_page_reads_fields_that_the_model_has(page, loops):
    folder = Path(explorer.__file__).parent
    script = "".join((folder / name).read_text("utf-8") for name in ("graph.js", "explorer.js"))
    tables = ["kernels", "locs", "regions", "stages", "steps", "values"]
    read = set(re.findall(rf"model\.({'|'.join(tables)})\[\w+\]\.(\w+)", script))
    assert {table for table, _ in read} == {*tables} - {"stages"}
    models = [data_of(page), model(loops)]
    for table, field in read:
        assert any(field in row for m in models for row in m[table]), f"model.{table} has no {field}"


def test_every_stage_reads_as_its_dump(step, loops):
    for f in (step, loops):
        m = model(f)
        assert len(m["stages"]) > 2
        for s in m["stages"]:
            found = "\n".join(text_of(m, s["region"]))
            assert found.splitlines() == [x for x in f.dump(s["name"]).splitlines()[1:-2] if not x.startswith("  // ")]


def test_what_a_pass_changed_is_marked_and_nothing_else(page):
    x = sc.vector("x")
    for m in (data_of(page), data_of(inspection.html(sc.compile(sc.sin(sc.log(sc.exp(x) + 1)) * 2, [x])))):
        counts = [len(m["regions"][s["region"]]["values"]) for s in m["stages"]]
        for s, was, now in zip(m["stages"][1:], counts, counts[1:]):
            assert now - was == len(s["change"]["new"]) - len(s["change"]["gone"])
    ops = lambda s, rows: sorted(m["values"][m["regions"][s["region"]]["values"][k]]["op"] for k in rows)
    (k,) = [k for k, s in enumerate(m["stages"]) if s["name"] == "stabilize"]
    stage, before = m["stages"][k], m["stages"][k - 1]
    assert ops(stage, stage["change"]["new"]) == ["softplus"]  # sin and mul are made of it, and are what they were
    assert ops(before, [k for k, _ in stage["change"]["gone"]]) == ["add", "exp", "log"]
    assert dict(stage["rules"]).keys() >= {"log_one_plus"}


def test_a_value_on_other_operands_is_another_value():
    x, y = sc.input("x", shape=("n",)), sc.input("y", shape=("n",))
    from symc.tools.explorer.graph import Tables

    f = sc.compile(sc.exp(x) - sc.exp(y), [x, y], mode="reference")._compilation.source
    g = sc.compile(sc.exp(y) - sc.exp(x), [x, y], mode="reference")._compilation.source
    tables = Tables()
    a, b = tables.stage(f), tables.stage(g)
    found = tables.difference(a, b)
    assert len(found["new"]) == len(found["gone"]) == 1  # the difference; both exponentials are still there
    assert tables.difference(a, a) == {"new": [], "gone": []}


def test_steps_link_to_values_kernels_lines_and_times(step, page, loops):
    for m in (data_of(page), model(loops)):
        last = m["regions"][m["stages"][-1]["region"]]["values"]
        top = [s for s in m["steps"] if not s["depth"]]
        assert top and {s["value"] for s in top} <= set(last)
        launched = [s for s in m["steps"] if s["kind"] == "launch"]
        assert all(m["kernels"][s["kernel"]]["name"].startswith(s["label"]) for s in launched)
        assert {s["kernel"] for s in launched} == set(range(len(m["kernels"])))
    m = data_of(page)
    assert all(s["seconds"] > 0 and s["runs"] == 1 for s in m["steps"])
    assert any(m["lineSeconds"].values())
    assert any("hidden = sc.log" in text for _, text in next(iter(m["files"].values())))
    assert any(s["depth"] for s in model(loops)["steps"])


def test_memory_is_that_of_the_call_or_says_what_is_assumed(step, page):
    known, assumed = data_of(page)["memory"], model(step)["memory"]
    assert known["sizes"] == {"n": 4} and known["assumed"] == [] and known["peak"] == int(step.memory(n=4))
    assert assumed["assumed"] == ["n"] and assumed["peak"] == int(step.memory(n=assumed["sizes"]["n"]))
    assert {r[0] for r in known["rows"]} >= {w for s in data_of(page)["steps"] for w in s["writes"]}


def test_params_of_loops_are_named(loops):
    m = model(loops)
    last = [m["values"][k] for k in m["regions"][m["stages"][-1]["region"]]["values"]]
    (loop,) = [v for v in last if v["op"] == "scan"]
    assert loop["roles"][:2] == ["carry 0", "row of x 0"]
    assert len(m["regions"][loop["regions"][0]]["params"]) == len(loop["in"])


class Elements(HTMLParser):
    """The elements of a page, and what they load."""

    def __init__(self, text: str):
        super().__init__()
        self.names: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        self.loaded += [f"{tag} {k}" for k, _ in attrs if k in ("src", "href", "onerror", "onclick", "action")]


def test_names_are_text_and_the_page_loads_nothing(page, loops):
    x = sc.input(EVIL, shape=("n",))
    f = sc.compile(sc.exp(x) + 1, name=EVIL)
    evil, plain = Elements(inspection.html(f)), Elements(page)
    assert evil.names == plain.names and evil.loaded == plain.loaded == []
    assert data_of(inspection.html(f))["name"] == EVIL and data_of(inspection.html(loops))["name"] == EVIL
    assert "default-src 'none'" in page and "innerHTML" not in page and "@import" not in page
    minidom.parseString(f.draw().encode())
    assert json.dumps(EVIL)[1:-1] not in inspection.html(f)


def test_the_page_of_what_has_no_plan_or_was_not_compiled(tmp_path, step):
    x = sc.vector("x")
    reference = sc.compile(sc.exp(x) + 1, mode="reference")
    reference.to_html(tmp_path / "reference.html")
    m = data_of((tmp_path / "reference.html").read_text("utf-8"))
    assert m["steps"] == [] and m["memory"] is None and m["stages"]
    (tmp_path / "f.ir").write_text(step.dump("input"))
    step.save(tmp_path / "f.symc")
    (tmp_path / "user.py").write_text(USER)
    for what, name in (("f.ir", "step"), ("f.symc", "step"), ("user.py:twice", "twice")):
        assert main(["view", str(tmp_path / what), "-o", str(tmp_path / "page.html")]) == 0
        assert data_of((tmp_path / "page.html").read_text("utf-8"))["name"] == name


@pytest.mark.parametrize("what, said", [
    ("user.py:twise", "did you mean 'twice'"), ("user.py:x", "x of .* is no compiled function"),
    ("none.ir", "No such file"), ("broken.ir", "ParseError"), ("empty.ir", "has no function"),
])
def test_what_cannot_be_shown_is_said(tmp_path, capsys, what, said):
    (tmp_path / "user.py").write_text(USER)
    (tmp_path / "broken.ir").write_text("func @f( {")
    (tmp_path / "empty.ir").write_text("")
    assert main(["view", str(tmp_path / what), "-o", str(tmp_path / "page.html")]) == 1
    assert re.search(said, capsys.readouterr().err)


def test_the_server_shows_one_page_to_this_machine():
    with server_of("<p>symc</p>") as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/"
        assert server.server_address[0] == "127.0.0.1"
        assert urllib.request.urlopen(url, timeout=10).read() == b"<p>symc</p>"
        for path, headers in (("other", {}), ("", {"Host": "a.example:80"})):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(urllib.request.Request(url + path, headers=headers), timeout=10)
        server.shutdown()


def test_pictures_with_graphviz_and_without(step, tmp_path, monkeypatch):
    def run(command, input, **_):
        drawn = b"drawn " + command[1].encode()
        return subprocess.CompletedProcess(command, int("-Todd" in command), drawn, b"Format: odd")

    monkeypatch.setattr("symc.tools.draw.shutil.which", lambda name: "/usr/bin/dot")
    monkeypatch.setattr("symc.tools.draw.subprocess.run", run)
    assert step.draw() == "drawn -Tsvg" and step.draw(tmp_path / "a.png") == str(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes() == b"drawn -Tpng"
    with pytest.raises(sc.SymcError, match=r"cannot write .*a\.odd.*Format: odd"):
        step.draw(tmp_path / "a.odd")
    monkeypatch.setattr("symc.tools.draw.shutil.which", lambda name: None)
    svg = minidom.parseString(step.draw().encode())
    boxes = [t.firstChild.data for t in svg.getElementsByTagName("title")]
    assert len(boxes) == step.to_networkx().number_of_nodes()
    assert len(svg.getElementsByTagName("path")) == 1 + len(set(step.to_networkx().edges()))
    assert step.draw(tmp_path / "a.dot") and (tmp_path / "a.dot").read_text().startswith('digraph "step"')
    with pytest.raises(sc.SymcError, match="png needs Graphviz") as e:
        step.draw(tmp_path / "b.png")
    assert ".svg" in str(e.value) and "test_explorer.py" in str(e.value)


def test_a_large_program_has_each_value_once():
    x = sc.input("x", shape=("n",))
    y = x
    for k in range(700):
        y = sc.tanh(y) * (1 + k) + x
    source = sc.compile(y, [x], mode="reference")._compilation.source
    out = optimize(source, "canonicalize,fold,stabilize,simplify")
    m = model_of_ir("large", out.stages, out)
    assert len(m["regions"][m["stages"][0]["region"]]["values"]) == 2100
    assert len(m["values"]) < 2 * (2100 + 2 * 700)  # a row and its number; the stages share them
    assert len(page_text(m)) < 400 * len(m["values"])


def test_the_same_function_has_the_same_page(step):
    assert inspection.html(step) == inspection.html(step)


def test_scopes_are_paths_of_lines():
    x = sc.input("x", shape=("n",))
    with sc.scope("encoder"):
        with sc.scope("layer"):
            y = sc.tanh(x)
        z = y * 2
    m = model(sc.compile(z + 1, [x], mode="reference"))
    paths = [loc["path"] for loc in m["locs"]]
    assert any(p[:2] == ["encoder", "layer"] for p in paths)
    assert any(p[:1] == ["encoder"] and "layer" not in p for p in paths)
