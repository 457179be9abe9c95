"""Saved and pickled functions: data only, the same results, the same words in errors."""

import pickle
import re
import subprocess
import sys
import threading
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import symc as sc
from symc.tensors.state import Cell

ROOT = Path(__file__).resolve().parents[2]
MODES = ["reference", "default"]


@dataclass
class Result:
    loss: object
    extra: object


def example(mode):
    """State, a large constant, odd constants, a guard, nests."""
    x, y = sc.input("x", "f4", ("n", 3)), sc.input("y", "f4", ("m", 3))
    w = sc.shared(np.arange(3, dtype="f4"), "w")
    big = sc.asarray(np.linspace(0, 1, 300, dtype="f4").reshape(100, 3)).sum(0)
    z = sc.where(x > 0, x * w + y, -0.0) * sc.asarray(np.array([np.inf, -0.0, np.nan], "f4"))
    return sc.compile(
        {"r": Result(z, [(x * big).sum(), None])}, {"x": x, "p": {"y": y}}, updates={w: w * 0.9}, mode=mode, name="step"
    ), w


def bits(result):
    return [a.tobytes() for a in (result["r"].loss, result["r"].extra[0])]


@pytest.mark.parametrize("mode", MODES)
def test_round_trip_gives_the_same_bits(tmp_path, mode):
    f, w = example(mode)
    path = tmp_path / "f.symc"
    f.save(path)
    g = sc.load(path)
    a = np.random.default_rng(0).normal(size=(5, 3)).astype("f4")
    for _ in range(3):
        assert bits(f(a, {"y": a})) == bits(g(a, p={"y": a}))
    assert w.get_value().tobytes() == g.shared["w"].get_value().tobytes()
    assert g.dump() == f.dump() and sc.parse(g.dump()).body is f._compilation.final.body
    assert type(g(a, {"y": a})["r"]) is Result
    assert list(tmp_path.iterdir()) == [path]


def test_states_of_a_loaded_function_are_its_own(tmp_path):
    w = sc.shared(np.ones(2), "w")
    f = sc.compile(w * 2, updates={w: w + 1}, mode="reference")
    f.save(tmp_path / "f")
    g = sc.load(tmp_path / "f")
    g.shared["w"].set_value(np.zeros(2))
    assert g().tolist() == [0, 0] and f().tolist() == [2, 2]
    assert g.shared["w"].get_value().tolist() == [1, 1] and w.get_value().tolist() == [2, 2]


def test_guards_and_lines_survive(tmp_path):
    f, _ = example("reference")
    f.save(tmp_path / "f")
    g = sc.load(tmp_path / "f")
    messages = []
    for h in (f, g):
        with pytest.raises(sc.ShapeError) as e:
            h(np.ones((2, 3)), {"y": np.ones((4, 3))})
        messages.append(str(e.value))
    assert messages[0] == messages[1]
    assert "z = sc.where(x > 0, x * w + y, -0.0)" in messages[0]


def test_a_new_process_computes_the_same_bits(tmp_path):
    x = sc.vector("x")
    c = sc.asarray(np.random.default_rng(1).normal(size=50))
    f = sc.compile((sc.tanh(x * c), (x * c).sum()), name="net")
    f.save(tmp_path / "f")
    (tmp_path / "g").write_bytes(pickle.dumps(f))
    a = np.linspace(-1, 1, 50)
    np.save(tmp_path / "a.npy", a)
    code = (
        f"import pickle, numpy as np, symc as sc; a = np.load({str(tmp_path / 'a.npy')!r})\n"
        f"for f in (sc.load({str(tmp_path / 'f')!r}), pickle.load(open({str(tmp_path / 'g')!r}, 'rb'))):\n"
        "    print(*[r.tobytes().hex() for r in f(a)])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    want = " ".join(r.tobytes().hex() for r in f(a))
    assert out.stdout.splitlines() == [want, want]


@pytest.mark.parametrize("mode", MODES)
def test_the_file_is_data(tmp_path, mode):
    f, _ = example(mode)
    f.save(tmp_path / "f")
    with zipfile.ZipFile(tmp_path / "f") as z:
        final = {"final.ir"} if mode == "default" else set()
        assert set(z.namelist()) == {"function.ir", "meta.json", "arrays.npz", "state.npz"} | final
        assert z.read("function.ir").startswith(b"func @step(")
        assert not any(b"\x80\x04" in z.read(n) for n in z.namelist() if not n.endswith(".npz"))


@pytest.mark.parametrize("damage", [b"", b"not a zip", "cut", "swap"])
def test_damaged_files_are_refused(tmp_path, damage):
    f, _ = example("reference")
    path = tmp_path / "f"
    f.save(path)
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-100])
    elif damage == "swap":
        with zipfile.ZipFile(path, "w") as z:
            z.writestr("meta.json", "{}")
    else:
        path.write_bytes(damage)
    with pytest.raises(sc.InputError, match="is not a saved function"):
        sc.load(path)


def test_states_are_saved_as_they_are_between_two_calls(tmp_path, monkeypatch):
    states = [sc.shared(np.zeros(2), f"w{k}") for k in range(3)]
    step = sc.compile(None, updates={w: w + 1 for w in states}, mode="reference")
    threads, get = [], Cell.get

    def slowly(cell, borrow):
        found = get(cell, borrow)
        threads.append(threading.Thread(target=step))
        threads[-1].start()
        threads[-1].join(0.1)  # it waits until all are read
        return found

    monkeypatch.setattr(Cell, "get", slowly)
    step.save(tmp_path / "step.symc")
    for thread in threads:
        thread.join()
    monkeypatch.undo()
    with zipfile.ZipFile(tmp_path / "step.symc") as z, z.open("state.npz") as file:
        assert {float(a[0]) for a in np.load(file).values()} == {0.0}
    assert states[0].get_value()[0] == 3


def test_pickled_functions_keep_sharing_state():
    w, x = sc.shared(np.zeros(2), "w"), sc.vector("x")
    step, read = sc.compile(None, updates={w: w + x}, mode="reference"), sc.compile(w * 2, mode="reference")
    w.set_value([1, 1])
    step2, read2, w2 = pickle.loads(pickle.dumps((step, read, w)))
    step2([1, 2])
    assert read2().tolist() == [4, 6] and w2.get_value().tolist() == [2, 3]
    assert w.get_value().tolist() == [1, 1] and read().tolist() == [2, 2]


def test_pickled_values_keep_identity_and_names():
    x = sc.vector("x")
    y = x * 2
    x2, y2 = pickle.loads(pickle.dumps((x, y)))
    assert x2.value is x.value and y2.value is y.value
    code = (
        "import pickle, sys, symc as sc; x, y = pickle.load(sys.stdin.buffer)\n"
        "print(sc.compile(y + x, [x], mode='reference')(x=[1, 2]))"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps((x, y)), capture_output=True, check=True, cwd=ROOT
    )
    assert out.stdout.split() == b"[3. 6.]".split()


def test_deep_functions_save(tmp_path):
    x = h = sc.vector("x")
    for _ in range(3000):
        h = h * 0.5 + x
    f = sc.compile(h, mode="reference")
    f.save(tmp_path / "f")
    a = np.ones(3)
    assert sc.load(tmp_path / "f")(a).tobytes() == f(a).tobytes()


def test_what_cannot_be_saved_says_so(tmp_path):
    f = sc.compile(sc.Variable("A") * 2, mode="reference")
    with pytest.raises(sc.InputError, match="compiled anew for every signature"):
        f.save(tmp_path / "f")
    f([1.0])
    next(iter(f.variants.values())).save(tmp_path / "f")
    assert sc.load(tmp_path / "f")([2]).tolist() == [4]
    g = sc.compile({(1, 2): sc.vector("x")}, mode="reference")
    with pytest.raises(sc.InputError, match="only strings and ints"):
        g.save(tmp_path / "g")
    assert not (tmp_path / "g").exists()


def test_a_variable_unpickled_beside_the_original_is_another():
    w = sc.shared(np.zeros(2), "w")
    v = pickle.loads(pickle.dumps(w))
    sc.compile([], [], updates={w: w + 1})()
    sc.compile([], [], updates={v: v - 1, w: w + v})()
    np.testing.assert_array_equal(w.get_value(), [1, 1])
    np.testing.assert_array_equal(v.get_value(), [-1, -1])


def test_a_file_that_cannot_be_written_is_named_and_leaves_nothing(tmp_path):
    f = sc.compile(sc.vector("x") * 2)
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "none" / "f.symc", tmp_path / "folder"):
        with pytest.raises(OSError, match=re.escape(repr(str(path)))):
            f.save(path)
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


def test_states_of_a_compiled_function_are_those_that_were_given():
    """As who looks them up in a dict of their own expects; copies in a loaded function are others."""
    states = [sc.shared(np.ones(2), f"w{k}") for k in range(3)]
    f = sc.compile(sum(states), updates={w: w + 1 for w in states})
    assert all(f.shared[w.name] is w for w in states)
    name = states.pop().name  # one that only the function holds is made again
    assert f.shared[name].get_value().tolist() == [1, 1] and f.shared["w0"] is states[0]
