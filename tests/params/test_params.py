"""Collections of parameters, and files of them."""

import json
import os
import zipfile

import numpy as np
import pytest

import symc as sc

FORMATS = ["npz", "safetensors"]


def model(seed: int = 0) -> sc.Params:
    P = sc.Params(seed)
    P.weight("w", (3, 4))
    P.sub("enc").weight("w", (4,), 2.0, "float64")
    P.sub("enc").lookup("words", 5, 2)
    P.state("count", (), 7, "int64")
    return P


def values(P: sc.Params) -> dict[str, np.ndarray]:
    return {path: s.get_value() for path, s in P.items()}


# --- collections ------------------------------------------------------------------------------------------------------


def test_a_collection_is_a_mapping_from_paths():
    P = model()
    assert list(P) == ["w", "enc/w", "enc/words", "count"] and len(P) == 4
    assert P["enc/w"] is P.sub("enc")["w"] is P.sub("enc").values()[0]
    assert list(P.sub("enc")) == ["w", "words"] and len(P.sub("enc")) == 2
    assert "enc/w" in P and "enc" not in P and P["w"] in P and P["w"] not in P.sub("enc")
    assert list(P.trained()) == ["w", "enc/w", "enc/words"] and P.size == 12 + 4 + 10 and P.sub("enc").size == 14
    assert P["enc/w"].dtype == "float64" and P["w"].dtype == "float32" and P["enc/w"].name == "enc/w"
    assert P.sub("enc").sub("deep") == P.sub("enc/deep") and P.sub("enc") != P.sub("dec")
    assert repr(P) == """\
Params(4 states, 26 numbers are trained)
  w          f32[3, 4]  12
  enc/w      f64[4]      4
  enc/words  f32[5, 2]  10  lookup
  count      i64[]       1  state"""
    assert repr(P.sub("enc")).startswith("Params('enc', 2 states, 14 numbers are trained)\n  w ")
    with pytest.raises(KeyError, match="did you mean 'enc/words'"):
        P["enc/word"]


def test_the_same_name_is_the_same_state():
    P = model()
    assert P.weight("enc/w", 4, 3.0, "float64") is P["enc/w"] and P["enc/w"].get_value()[0] == 2
    for ask, error in [
        (lambda: P.weight("w", (4, 3)), sc.ShapeError), (lambda: P.weight("w", (3, 4), dtype="float64"), sc.DTypeError),
        (lambda: P.state("w", (3, 4)), sc.InputError), (lambda: P.lookup("w", 3, 4), sc.InputError),
        (lambda: P.weight("enc", 4), sc.InputError), (lambda: P.sub("w"), sc.InputError),
        (lambda: P.weight("", 4), sc.InputError), (lambda: P.weight("a//b", 4), sc.InputError),
        (lambda: P.weight("v", ("n", 4)), sc.ShapeError), (lambda: P.weight("v", -1), sc.ShapeError),
        (lambda: P.weight("v", 4, np.zeros(5)), sc.ShapeError), (lambda: P.weight("v", 4, "zeros"), sc.InputError),
        (lambda: sc.Params(-1), sc.InputError), (lambda: sc.Params(0.5), sc.InputError),
    ]:
        before = list(P)
        with pytest.raises(error):
            ask()
        assert list(P) == before


def test_a_shape_that_differs_is_an_error_that_shows_both_lines():
    P = sc.Params()
    P.weight("w", (3, 4))
    with pytest.raises(sc.ShapeError, match=r"w has shape \(3, 4\) already, and \(4, 3\) is asked for") as caught:
        P.weight("w", (4, 3))
    assert str(caught.value).count("test_params.py:") == 2


def test_numbers_depend_on_the_seed_and_the_path_alone():
    one, other = model(), sc.Params(0)
    other.sub("enc").lookup("words", 5, 2)  # another order, and others beside it
    other.weight("more", 100)
    other.weight("w", (3, 4))
    for path in ("w", "enc/words"):
        np.testing.assert_array_equal(one[path].get_value(), other[path].get_value())
    assert not np.array_equal(one["w"].get_value(), model(1)["w"].get_value())
    P = sc.Params()
    assert not np.array_equal(P.weight("a", (3, 4)).get_value(), P.weight("b", (3, 4)).get_value())
    double = sc.Params(0, "float64").weight("w", (3, 4)).get_value()
    np.testing.assert_array_equal(one["w"].get_value(), double.astype("float32"))


def test_keys_are_fresh_in_every_call_and_come_back_with_the_file(tmp_path):
    P = sc.Params(3)
    draw = sc.random.normal(P.key(), (2,)) + 0 * sc.random.normal(P.key(), (2,))
    f = sc.compile(draw, updates=P.updates)
    first = f()
    sc.save_params(tmp_path / "p.npz", P)
    then = [f(), f()]
    assert not np.array_equal(first, then[0])
    sc.load_params(tmp_path / "p.npz", P)
    np.testing.assert_array_equal([f(), f()], then)


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", FORMATS)
def test_what_is_saved_comes_back(tmp_path, ending):
    path = tmp_path / f"p.{ending}"
    P, Q = model(), model(1)
    P.state("empty", (0, 3)), Q.state("empty", (0, 3))
    sc.save_params(path, P)
    assert sc.load_params(path, Q) == ([], [])
    assert {n: a.tolist() for n, a in sc.load_params(path).items()} == {n: s.get_value().tolist() for n, s in Q.items()}
    for name, a in values(P).items():
        np.testing.assert_array_equal(Q[name].get_value(), a)
        assert Q[name].get_value().dtype == a.dtype
    content = path.read_bytes()
    sc.save_params(path, Q)
    assert path.read_bytes() == content and os.listdir(tmp_path) == [path.name]
    P["w"].set_value(np.zeros((3, 4)))
    assert Q["w"].get_value().any()
    sc.save_params(path, {"a": P, "b": P.sub("enc"), "c": P["w"]})
    R = {"a": model(2), "b": model(3).sub("enc"), "c": sc.shared(np.ones((3, 4), "float32"))}
    R["a"].state("empty", (0, 3))
    sc.load_params(path, R)
    assert not R["c"].get_value().any() and R["b"]["w"].get_value()[0] == 2


def test_files_are_those_that_others_read_and_write(tmp_path):
    P = model()
    sc.save_params(tmp_path / "p.npz", P)
    with np.load(tmp_path / "p.npz") as z:
        assert sorted(z) == sorted(P) and np.array_equal(z["enc/w"], P["enc/w"].get_value())
    np.savez_compressed(tmp_path / "q.npz", **{name: a + 1 for name, a in values(P).items()})
    sc.load_params(tmp_path / "q.npz", P)
    assert P["count"].get_value() == 8
    # the example of the format's description, written by hand
    header = b'{"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}   '
    (tmp_path / "r.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + np.float32([1, 2]).tobytes())
    Q = sc.Params()
    w = Q.weight("w", (1, 2))
    sc.load_params(tmp_path / "r.safetensors", Q)
    assert w.get_value().tolist() == [[1, 2]]
    sc.save_params(tmp_path / "s.safetensors", P)
    data = (tmp_path / "s.safetensors").read_bytes()
    size = int.from_bytes(data[:8], "little")
    table = json.loads(data[8 : 8 + size])
    begin, end = table["w"]["data_offsets"]
    assert size % 8 == 0 and all(e["data_offsets"][0] % 8 == 0 for n, e in table.items() if n in ("enc/w", "count"))
    np.testing.assert_array_equal(np.frombuffer(data[8 + size :][begin:end], "<f4"), P["w"].get_value().ravel())


@pytest.mark.parametrize("ending", FORMATS)
def test_damage_anywhere_is_found_and_changes_nothing(tmp_path, ending):
    path = tmp_path / f"p.{ending}"
    P = model()
    sc.save_params(path, P)
    good, Q = path.read_bytes(), model(1)
    before = values(Q)
    rng = np.random.default_rng(0)
    bad = [good[:k] for k in (0, 1, 7, 8, 40, len(good) // 2, len(good) - 1)] + [b"x" + good, b"PK\3\4", b"\x80\4N."]
    for _ in range(60):
        k = int(rng.integers(len(good)))
        bad.append(good[:k] + bytes([good[k] ^ (1 << int(rng.integers(8)))]) + good[k + 1 :])
    loaded = 0
    for content in bad:
        path.write_bytes(content)
        try:
            sc.load_params(path, Q)
            loaded += 1  # a bit of a zip file that says nothing about an array (a date, a flag of a system)
            for name, a in values(P).items():
                np.testing.assert_array_equal(Q[name].get_value(), a)
            for name, a in before.items():
                Q[name].set_value(a)
        except sc.InputError:
            pass
        for name, a in before.items():
            np.testing.assert_array_equal(Q[name].get_value(), a)
    assert loaded < len(bad) / 4


@pytest.mark.parametrize("ending", FORMATS)
def test_files_of_other_parameters_are_refused_and_change_nothing(tmp_path, ending):
    path = tmp_path / f"p.{ending}"
    sc.save_params(path, model())
    cases = []
    for change, message in [
        (lambda P: P.weight("more", 2), "has no 'more'"), (lambda P: P.sub("enc").weight("u", 2), "has no 'enc/u'")]:
        P = model(1)
        change(P)
        cases.append((P, message))
    P = sc.Params(1)
    P.weight("w", (3, 4)), P.weight("enc/w", 4, dtype="float64"), P.lookup("enc/words", 5, 2)
    cases.append((P, "has 'count', which the parameters have not"))
    P = sc.Params(1)
    P.weight("w", (3, 5)), P.weight("enc/w", 4, dtype="float64"), P.lookup("enc/words", 5, 2)
    P.state("count", (), 0, "int64")
    cases.append((P, r"w is float32\[3, 4\]"))
    P = sc.Params(1)
    P.weight("w", (3, 4), dtype="float64"), P.weight("enc/w", 4, dtype="float64"), P.lookup("enc/words", 5, 2)
    P.state("count", (), 0, "int64")
    cases.append((P, r"w is float32\[3, 4\]"))
    for P, message in cases:
        before = values(P)
        with pytest.raises(sc.InputError, match=message):
            sc.load_params(path, P)
        assert all(np.array_equal(P[n].get_value(), a) for n, a in before.items())
    assert sc.load_params(path, cases[0][0], strict=False) == (["more"], [])
    assert cases[0][0]["count"].get_value() == 7


def hostile(header: object, body: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


@pytest.mark.parametrize("content", [
    hostile([]), hostile(b"{"), hostile(b"\xff"), hostile({"w": 3}), hostile({"w": {"dtype": "F32"}}),
    hostile({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}, bytes(4)),
    hostile({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}, bytes(8)),
    hostile({"w": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}, bytes(8)),
    hostile({"w": {"dtype": "F32", "shape": [-1, -1], "data_offsets": [0, 4]}}, bytes(4)),
    hostile({"w": {"dtype": "F32", "shape": [1.0], "data_offsets": [0, 4]}}, bytes(4)),
    hostile({"w": {"dtype": "F32", "shape": [True], "data_offsets": [0, 4]}}, bytes(4)),
    hostile({"w": {"dtype": "X", "shape": [1], "data_offsets": [0, 4]}}, bytes(4)),
    hostile({"w": {"dtype": [], "shape": [1], "data_offsets": [0, 4]}}, bytes(4)),
    hostile({n: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]} for n in "wv"}, bytes(4)),
    hostile(b'{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}',
            bytes(4)),
    hostile(b"[" * 100_000), (2**63).to_bytes(8, "little") + b"{}",
], ids=range(17))  # fmt: skip
def test_hostile_safetensors(tmp_path, content):
    P = sc.Params()
    w = P.weight("w", 1)
    (tmp_path / "p.safetensors").write_bytes(content)
    with pytest.raises(sc.InputError, match=r"is no safetensors file, or is damaged"):
        sc.load_params(tmp_path / "p.safetensors", P)
    assert w.get_value() == 0


def test_a_pickle_in_a_file_is_not_run(tmp_path):
    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "was here"),)

    P = sc.Params()
    P.weight("w", ())
    np.savez(tmp_path / "p.npz", w=np.array(Evil(), object))
    with pytest.raises(sc.InputError, match="no file of arrays"):
        sc.load_params(tmp_path / "p.npz", P)
    with zipfile.ZipFile(tmp_path / "q.npz", "w") as z:
        z.writestr("w.npy", b"\x80\x04N.")
    with pytest.raises(sc.InputError, match="no file of arrays"):
        sc.load_params(tmp_path / "q.npz", P)
    assert not (tmp_path / "was here").exists()


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "p.npz"
    sc.save_params(path, model())
    good = path.read_bytes()

    def fail(*args):
        raise OSError("the disk is full")

    for name in ("fsync", "replace"):
        with monkeypatch.context() as m:
            m.setattr(os, name, fail)
            with pytest.raises(OSError, match="full"):
                sc.save_params(path, model(1))
        assert path.read_bytes() == good and os.listdir(tmp_path) == ["p.npz"]


def test_names_of_files_and_what_cannot_be_saved(tmp_path):
    with pytest.raises(sc.InputError, match="does not say in which format"):
        sc.save_params(tmp_path / "p.bin", model())
    with pytest.raises(sc.InputError, match="no collection of parameters"):
        sc.save_params(tmp_path / "p.npz", [1])
    P = sc.Params()
    P.state("z", 2, 0, "complex128")
    with pytest.raises(sc.InputError, match=r"safetensors has no complex128"):
        sc.save_params(tmp_path / "p.safetensors", P)
    sc.save_params(tmp_path / "p.npz", P)
    with pytest.raises(FileNotFoundError):
        sc.load_params(tmp_path / "none.npz", P)
