"""Lines of the user as call stacks: paths, scopes, traces, profiles, errors."""

import json
import pickle
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import symc as sc
from symc.ir import location
from symc.ir.location import Loc, short
from symc.tensors import callsite, guidance
from symc.tracebacks import of_user

ROOT = Path(__file__).resolve().parents[2]


def dense(x, w):
    h = x @ w
    return sc.tanh(h) + 1


def encoder(x, ws):
    for k, w in enumerate(ws):
        with sc.scope(f"layer{k}"):
            x = dense(x, w)
    return x


def looped(x, n):
    for _ in range(n):
        x = sc.sin(x)
    return x


@pytest.fixture(scope="module")
def model():
    x = sc.input("x", "f8", ("n", 3))
    ws = [sc.input(f"w{k}", "f8", (3, 3)) for k in range(3)]
    with sc.scope("encoder"):
        y = encoder(x, ws)
    z = dense(y, ws[0])
    out = dense(z, ws[1])
    arrays = np.ones((2, 3)), *[np.eye(3) * (k + 1) for k in range(3)]
    return sc.compile([out, sc.grad(out.sum(), ws[0])], [x, *ws], name="model", pipeline="canonicalize,fuse"), arrays


def frames(loc):
    return [(s.function, s.line) for s in loc.stack]


def test_a_value_has_the_stack_of_its_line():
    def inner(v):
        return v * 2

    v = sc.vector("v")
    first, second = inner(v), inner(v) + 1
    (loc,) = location.noted(second.value)
    assert loc.function == "test_a_value_has_the_stack_of_its_line" and loc.called == "add"
    stacks = sorted(frames(x) for x in location.noted(first.value))  # one value, which two places asked for
    assert [s[0][0] for s in stacks] == ["inner", "inner"] and len({s[1] for s in stacks}) == 1
    assert all("site-packages" not in s.file and "/symc/" not in s.file for s in loc.stack)


def test_stacks_are_bounded_and_shared():
    def deep(v, n):
        return sc.exp(v) if n == 0 else deep(v, n - 1)

    v = sc.vector("v")
    (loc,) = location.noted(deep(v, 100).value)
    assert len(loc.stack) == location.DEEPEST
    made = len(callsite._sites)
    values = [sc.exp(v * float(k)) for k in range(200)]
    assert len({id(x) for y in values for x in location.noted(y.value)}) == 1 and len(callsite._sites) <= made + 2


def test_lines_are_interned_and_travel():
    loc = Loc("a.py", 3, outer=Loc("b.py", 4), scopes=(("encoder", 1),), function="f")
    assert loc is Loc("a.py", 3, outer=Loc("b.py", 4), scopes=(("encoder", 1),), function="f")
    assert pickle.loads(pickle.dumps(loc)) is loc and loc.path == "encoder/f"
    assert str(loc.derived("gradient of")) == "gradient of encoder/f a.py:3"
    assert loc.derived("x").derived("y").role == "x"
    assert location.brief([loc, Loc("a.py", 3, at=7), Loc("a.py", 3, at=9)]) == "a.py:3, encoder/f a.py:3"


def test_lines_change_neither_fingerprints_nor_text_that_is_read():
    v = sc.vector("v")
    plain = sc.compile(sc.exp(v) * 2, [v], mode="reference", name="f")
    with sc.scope("encoder"), sc.scope("inner/most"):
        w = sc.vector("v")
        scoped = sc.compile(sc.exp(w) * 2, [w], mode="reference", name="f")
    a, b = plain._built.function, scoped._built.function
    assert a.body.fingerprint == b.body.fingerprint and "encoder/inner/most test_user_lines.py" in scoped.dump()
    assert sc.parse(scoped.dump()).body is sc.parse(plain.dump()).body


def test_scopes_are_of_a_thread_and_end_with_errors():
    found = []
    with pytest.raises(ZeroDivisionError), sc.scope("a"):
        thread = threading.Thread(target=lambda: found.append(location.scopes()))
        thread.start()
        thread.join()
        _ = 1 / 0
    assert found == [()] and location.scopes() == ()
    for bad in ("", "/", 3):
        with pytest.raises(sc.InputError, match="a scope's name is a string"), sc.scope(bad):
            pass

    @sc.scope("decorated")
    def f(v):
        return sc.exp(v)

    (loc,) = location.noted(f(sc.vector("v")).value)
    assert loc.path == "decorated/f"


def test_gradients_keep_the_path_of_what_they_are_of(model):
    text = model[0].dump("input")
    assert "// gradient of encoder/encoder/layer1/dense test_user_lines.py:" in text


def test_a_trace_has_every_layer_by_path(model):
    f, arrays = model
    t = f.trace(*arrays)
    x, layers = arrays[0], []
    for w in arrays[1:]:
        x = np.tanh(x @ w) + 1
        layers.append(x)
    for k in range(3):
        np.testing.assert_allclose(t[f"encoder/layer{k}"], layers[k])
        np.testing.assert_allclose(t[f"layer{k}/tanh"], layers[k] - 1)
    np.testing.assert_allclose(t["layer1/dense/h"], layers[0] @ arrays[2])
    np.testing.assert_allclose(t["encoder"], layers[2])
    np.testing.assert_allclose(t["z"], np.tanh(layers[2] @ arrays[1]) + 1)
    np.testing.assert_allclose(t["out"], f(*arrays)[0])
    assert "layer1/h" not in t or "encoder/encoder/layer1/dense/h" in t
    assert t.get("nowhere") is None and "nowhere" not in t and "encoder/layer2" in t
    for bad in ("nowhere", "layer7/h", "", "/"):
        with pytest.raises(KeyError, match=r"trace: nothing is called"):
            t[bad]
    assert list(pickle.loads(pickle.dumps(t))) == list(t)


def test_a_path_of_several_is_an_error_that_lists_them():
    v = sc.vector("v")
    with sc.scope("a"):
        h = v + 1
    with sc.scope("b"):
        h = h * 2
    t = sc.compile(h, [v], mode="reference").trace([1.0])
    assert t["a/h"] == 2 and t["b/h"] == 4
    with pytest.raises(sc.InputError, match=r"2 intermediates are called 'h'[\s\S]*'a/h'[\s\S]*'b/h'"):
        t["h"]


def test_every_turn_of_a_line_is_in_a_trace():
    v = sc.vector("v")
    y = looped(v, 3)
    t = sc.compile(y, [v], mode="reference").trace([1.0])
    assert [float(t[k][0]) for k in ("x[0]", "x[1]", "x [2]".replace(" ", "")) if k in t] == [
        np.sin(1.0), np.sin(np.sin(1.0))]
    assert float(t["y"][0]) == np.sin(np.sin(np.sin(1.0)))


def test_a_profile_is_a_tree(model, tmp_path):
    f, arrays = model
    p = f.profile(*arrays)
    tree = p.tree()
    assert tree.total == pytest.approx(p.seconds) and tree.seconds == 0
    assert tree["encoder"].total == pytest.approx(sum(tree[f"encoder/layer{k}"].total for k in range(3)))
    assert "layer1" in str(p) and "(gradient)" in str(tree)
    with pytest.raises(KeyError):
        tree["nowhere"]
    tree.to_folded(tmp_path / "p.txt")
    rows = [line.rpartition(" ") for line in (tmp_path / "p.txt").read_text().splitlines()]
    assert all(int(n) > 0 and path.startswith("model;") for path, _, n in rows)
    assert sum(";encoder;" in path for path, _, _ in rows) >= 3
    tree.to_speedscope(tmp_path / "p.json")
    found = json.loads((tmp_path / "p.json").read_text())
    (profile,) = found["profiles"]
    names = [found["shared"]["frames"][k]["name"] for k in profile["samples"][0]]
    assert names[0] == "model" and sum(profile["weights"]) == pytest.approx(profile["endValue"])


def test_saved_functions_keep_their_stacks(model, tmp_path):
    f, arrays = model
    f.save(tmp_path / "f.symc")
    g = sc.load(tmp_path / "f.symc")
    np.testing.assert_allclose(g.trace(*arrays)["encoder/layer1"], f.trace(*arrays)["encoder/layer1"])


# --- errors -----------------------------------------------------------------------------------------------------------

SCRIPT = '''
import numpy as np, symc as sc
def layer(A):
    return sc.linalg.inv(A)
def build():
    A = sc.matrix("A")
    return sc.compile(layer(A), [A])
'''
MISTAKES = {
    "shapes": 'x = sc.input("x", "f8", ("n", 3))\nx + sc.input("y", "f8", (4,))',
    "at run time": "f = build()\nf(np.zeros((2, 2)))",
    "arguments": "sc.sum(sc.vector('x'), 1, 2, 3, 4, 5, 6, 7, 8)",
    "compile": "sc.compile(sc.vector('x') + 1, [sc.vector('y')])",
    "inside": "sc.scan(lambda c, a: (c + a.backward(), a), 0.0, sc.vector('x'))",
}


def run(code, **environment):
    import os

    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT,
                         env={**os.environ, **environment})
    assert out.returncode == 1
    return out.stderr


def test_tracebacks_have_the_users_frames_alone():
    lines = ["import traceback, sys"]
    for code in MISTAKES.values():
        lines.append(f"try:\n    exec(compile({SCRIPT + code!r}, 'user.py', 'exec'), {{}})\n"
                     "except Exception as e:\n    sys.excepthook(type(e), e, e.__traceback__)")
    text = run("\n".join([*lines, "sys.exit(1)"]))
    assert text.count("Traceback") == len(MISTAKES) and "symc/" not in text.replace("symc.errors", "")
    assert "called in user.py:7" in text and "in user.py:4" in text
    full = run(SCRIPT + MISTAKES["shapes"], SYMC_FULL_TRACEBACK="1")
    assert "symc/tensors" in full


def test_errors_of_symc_itself_keep_their_frames():
    with pytest.raises(sc.InternalError) as found, sc.config(full_traceback=False):
        sys.modules["symc.tracebacks"].trim(_raised := sc.InternalError("a bug"))
        raise _raised
    assert not sys.modules["symc.tracebacks"].hides(found.value)
    assert of_user(None) is None


def test_cells_of_notebooks_are_named(monkeypatch):
    assert short("<ipython-input-3-0badc0de>", 2) == "In[3], line 2"
    shell = type("Shell", (), {"compile": type("C", (), {"_filename_map": {"/tmp/ipykernel_1/2.py": 7}})})
    monkeypatch.setitem(sys.modules, "IPython", type("I", (), {"get_ipython": staticmethod(lambda: shell)}))
    assert str(Loc("/tmp/ipykernel_1/2.py", 4)) == "In[7], line 4"


def test_a_shell_that_is_not_the_one_of_the_process_gets_plain_lines(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", type("I", (), {"get_ipython": staticmethod(lambda: None)}))
    with pytest.raises(sc.ShapeError) as found:
        sc.vector("x") @ sc.input("w", shape=(2, 3, 4)) + sc.input("v", shape=(5,))
    lines = found.value._render_traceback_()
    assert "ShapeError" in "".join(lines) and not any("manipulation.py" in x or "promotion.py" in x for x in lines)


def test_kernels_compile_after_others_gave_attributes_to_nodes_of_ast():
    import ast

    from symc.codegen.language.syntax import every, function

    tree = function("def f(x):\n    return x + 1\n")
    expected = len(every(tree))
    load = tree.body[0].value.left.ctx
    load.parent = tree  # as packages that format tracebacks do; the node is one for all trees
    try:
        assert len(every(tree)) == expected and isinstance(load, ast.Load)
    finally:
        del load.parent


# --- what to write instead --------------------------------------------------------------------------------------------

HABITS = [("tensor", n) for n in guidance.OF_TENSORS] + [("symc", n) for n in guidance.OF_SYMC]


@pytest.mark.parametrize(("what", "name"), HABITS)
def test_habits_of_other_packages_are_told_what_to_write(what, name):
    thing, table = (sc.vector("x"), guidance.OF_TENSORS) if what == "tensor" else (sc, guidance.OF_SYMC)
    with pytest.raises(AttributeError) as found:
        getattr(thing, name)
    text = str(found.value)
    assert isinstance(found.value, sc.SymcError) and table[name] in text and "test_user_lines.py:" in text
    assert not hasattr(thing, name) and getattr(thing, name, 3) == 3
    for path in re.findall(r"\bsc\.([A-Za-z_][\w.]*\w)", table[name]):
        inner = sc
        for part in path.split("."):
            inner = getattr(inner, part)


def test_there_are_enough_habits_and_misspelt_names_suggest():
    assert len(HABITS) >= 60
    with pytest.raises(AttributeError, match=r"'Tensor' object has no attribute 'reshap'\n[\s\S]*mean 'reshape'"):
        sc.vector("x").reshap
    with pytest.raises(AttributeError, match=r"module 'symc' has no attribute 'tanhh'\n[\s\S]*did you mean 'tanh'"):
        sc.tanhh
    for thing, name, found in ((sc, "svd", "it is sc.linalg.svd"), (sc, "Adam", "it is sc.optim.adam"),
                               (sc.optim, "SGD", "did you mean 'sgd'"), (sc.nn, "Linear", "sc.nn.dense"),
                               (sc.random, "randn", "sc.random.normal"), (sc, "unsqueeze", "sc.expand_dims")):
        with pytest.raises(AttributeError, match=re.escape(found)):
            getattr(thing, name)
    assert not hasattr(sc.vector("x"), "__nothing__") and not hasattr(sc.vector("x"), "zzzz")
