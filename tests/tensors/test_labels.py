"""Labels of axes: how functions carry them, what axis= makes of them, errors, dumps, and arrays of xarray's."""

import pickle

import numpy as np
import pytest

import symc as sc
from symc.errors import InputError, ShapeError
from symc.ir.op import Linear, picks
from symc.ir.ops.kernel import results_of
from symc.ir.reference import run_values
from symc.ir.text import print_function
from symc.tensors.labels import _Walk
from symc.tensors.leaves import Leaf, register_leaf
from tests.ir.op_cases import SAMPLED, apply, cases
from tests.tensors.labelled_arrays import module

xr = module()
X = sc.input("x", "float64", shape=("n", 6), dims=("batch", "feature"))
W = sc.input("w", "float64", shape=(6, 3), dims=("feature", "class"))
B = sc.input("b", "float64", shape=(3,), dims="class")
K = sc.input("k", "int64", shape=(2,), dims=("query",))
PLAIN = sc.input("plain", "float64", shape=("n", 6))

CARRIED = {
    "elementwise": (lambda: sc.tanh(X) * 2 + 1, ("batch", "feature")),
    "broadcast": (lambda: X @ W + B, ("batch", "class")),
    "with one that has none": (lambda: PLAIN + X, ("batch", "feature")),
    "sum": (lambda: X.sum(axis="feature"), ("batch",)),
    "by position": (lambda: X.mean("batch"), ("feature",)),
    "several": (lambda: X.std(axis=("feature", "batch")), ()),
    "keepdims": (lambda: X.max(axis="batch", keepdims=True), (None, "feature")),
    "argmax": (lambda: X.argmax(axis="feature"), ("batch",)),
    "median": (lambda: sc.median(W, axis="feature"), ("class",)),
    "logsumexp": (lambda: sc.special.logsumexp(X, axis="feature"), ("batch",)),
    "softmax": (lambda: sc.special.softmax(X, axis="feature"), ("batch", "feature")),
    "norm": (lambda: sc.linalg.norm(X, axis="feature"), ("batch",)),
    "cumsum": (lambda: sc.cumsum(X, axis="feature"), ("batch", "feature")),
    "sort": (lambda: sc.sort(X, axis="feature"), ("batch", "feature")),
    "T": (lambda: X.T, ("feature", "batch")),
    "transpose": (lambda: X.transpose("feature", "batch"), ("feature", "batch")),
    "moveaxis": (lambda: sc.moveaxis(X, "feature", 0), ("feature", "batch")),
    "swapaxes": (lambda: X.swapaxes("batch", "feature"), ("feature", "batch")),
    "slices": (lambda: X[1:, ::-2], ("batch", "feature")),
    "one element": (lambda: X[:, 0], ("batch",)),
    "newaxis": (lambda: X[:, None], ("batch", None, "feature")),
    "expand_dims": (lambda: sc.expand_dims(X, 0), (None, "batch", "feature")),
    "indices": (lambda: X[:, np.array([1, 2])], ("batch", "feature")),
    "indices with labels": (lambda: X[K], ("query", "feature")),
    "indices of two axes": (lambda: X[np.array([[0, 1]])], (None, None, "feature")),
    "mask": (lambda: X[X[:, 0] > 0], ("batch", "feature")),
    "take": (lambda: sc.take(X, np.array([1, 2]), axis="feature"), ("batch", "feature")),
    "at": (lambda: X.at[0].set(1.0), ("batch", "feature")),
    "roll": (lambda: sc.roll(X, 1, axis="feature"), ("batch", "feature")),
    "diff": (lambda: sc.diff(X, axis="feature"), ("batch", "feature")),
    "pad": (lambda: sc.pad(X, 1), ("batch", "feature")),
    "concatenate": (lambda: sc.concatenate([X, PLAIN], axis=0), ("batch", "feature")),
    "of other labels": (lambda: sc.concatenate([B, K * 1.0]), (None,)),
    "stack": (lambda: sc.stack([B, B]), (None, "class")),
    "broadcast_to": (lambda: sc.broadcast_to(B, (5, 3)), (None, "class")),
    "reshape of another axis": (lambda: X.reshape(-1, 2, 3), ("batch", None, None)),
    "ravel": (lambda: X.ravel(), (None,)),
    "matmul": (lambda: W.T @ X.T, ("class", "batch")),
    "einsum": (lambda: sc.einsum("bi,ij->jb", X, W), ("class", "batch")),
    "outer": (lambda: sc.outer(X[0], B), ("feature", "class")),
    "outer with itself": (lambda: sc.outer(B, B), (None, None)),
    "where": (lambda: sc.where(X > 0, X, 0), ("batch", "feature")),
    "astype": (lambda: X.astype("float32"), ("batch", "feature")),
    "vmap": (lambda: sc.vmap(lambda r: r.sum("feature") * B)(X), ("batch", "class")),
    "vmap of columns": (lambda: sc.vmap(lambda c: c.sum("batch"), in_axes=1)(X), ("feature",)),
    "rows of a scan": (lambda: sc.scan(lambda c, r: (c + r, r.sum("feature")), sc.zeros(6), X)[1], ("batch",)),
    "carry of a scan": (lambda: sc.scan(lambda c, r: (c + r, None), sc.zeros(6), X)[0], ("feature",)),
    "carries that change places": (lambda: sc.scan(lambda c, _: ((c[1], c[0]), c[0]), (sc.zeros(3) + B, sc.ones(3)),
                                                   length=3)[1], (None, None)),
    "while_loop": (lambda: sc.while_loop(lambda c: c.sum("class") < 3, lambda c: c * 2, B), ("class",)),
    "map": (lambda: sc.map(lambda r: r * 2, X), ("batch", "feature")),
    "cond": (lambda: sc.cond(B.sum() > 0, lambda: X * 2, lambda: X), ("batch", "feature")),
    "branches that differ": (lambda: sc.cond(B.sum() > 0, lambda: W[:3], lambda: W[:3].T), (None, None)),
    "checkpoint": (lambda: sc.checkpoint(lambda a: a * a.sum("batch"))(X), ("batch", "feature")),
    "grad": (lambda: sc.grad((X @ W).sum(), W), ("feature", "class")),
    "hvp": (lambda: sc.hvp((B**3).sum(), B, B), ("class",)),
    "rename": (lambda: X.rename(feature="pixel"), ("batch", "pixel")),
    "rename by position": (lambda: PLAIN.rename({0: "batch"}), ("batch", None)),
    "drop_dims": (lambda: X.drop_dims() + 1, (None, None)),
    "pickle": (lambda: pickle.loads(pickle.dumps(X.T)), ("feature", "batch")),
    "a parameter that is called axis": (lambda: B.rename({"class": "axis"}).rename(axis="a"), ("a",)),
}


@pytest.mark.parametrize("case", CARRIED)
def test_carried(case):
    make, dims = CARRIED[case]
    assert make().dims == dims


def labelled(op, arrays, attrs):
    """An op on leaves whose axes all have labels of their own."""
    whole, leaves = apply(op, arrays, attrs)
    for k, x in enumerate(leaves):
        register_leaf(x, Leaf(f"x{k}", dims=tuple(f"{k}.{a}" for a in range(x.ndim))))
    return whole, leaves


@pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in SAMPLED])
def test_labels_of_every_op_are_of_its_axes(op):
    for arrays, attrs in cases(op)[:6]:
        whole, _ = labelled(op, arrays, attrs)
        for still in (False, True):
            walk = _Walk({}, still=still)
            for v in results_of(whole):
                own = walk.of(v)
                assert len(own) == v.ndim
                for size, label in zip(v.shape, own, strict=True):
                    if label and still:
                        k, a = map(int, label.split("."))
                        assert arrays[k].shape[a] == size


MOVING = [op for op in SAMPLED if picks(op) and isinstance(op.derivative, Linear) and "elementwise" not in op.traits]


@pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in MOVING])
def test_coordinates_stay_where_elements_stay(op):
    """An op that moves elements moves their coordinates along an axis as well: those of an axis that kept its label."""
    for arrays, attrs in cases(op):
        whole, leaves = labelled(op, arrays, attrs)
        for axis, label in enumerate(_Walk({}, still=True).of(whole)):
            if label is None or arrays[0].dtype.kind not in "fi":
                continue
            k, a = map(int, label.split("."))
            if k >= picks(op):
                continue  # an index, whose axes are axes of the result
            own = [np.full(x.shape, -1).astype(x.dtype) if j < picks(op) else x for j, x in enumerate(arrays)]
            index = np.arange(arrays[k].shape[a]).reshape([-1 if i == a else 1 for i in range(arrays[k].ndim)])
            own[k] = np.broadcast_to(index, arrays[k].shape).astype(arrays[k].dtype)
            (out,) = run_values([whole], dict(zip(leaves, own, strict=True)), {})
            want = np.broadcast_to(np.arange(out.shape[axis]).reshape(
                [-1 if i == axis else 1 for i in range(out.ndim)]), out.shape)
            assert np.all((out == want) | (out == -1)), attrs


# --- identity and text ------------------------------------------------------------------------------------------------


def test_labels_are_no_part_of_a_program():
    a, b = (sc.input("x", "float64", shape=(3,), dims=d) for d in (("batch",), None))
    f, g = (sc.compile(x * 2, [x]) for x in (a, b))
    assert f.inputs[0].dims == ("batch",) and g.inputs[0].dims is None
    one, other = (h._compilation.source for h in (f, g))
    assert one.body is other.body
    assert print_function(one, locations=False) == print_function(other, locations=False)
    assert "// %x : [batch]" in f.dump() and "[batch]" not in g.dump()


def test_shown():
    assert repr(X) == "Tensor(x: f64[batch: n, feature: 6])"
    assert repr(X[:, 0] + 1) == "Tensor(f64[batch: n] = add)"


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda: B + X[0, :3], ShapeError, "add: axis 0 is 'class' in one operand and 'feature' in another"),
    (lambda: X @ W.rename(feature="pixel"), ShapeError, "summed over is 'feature' in one operand and 'pixel' in an"),
    (lambda: sc.concatenate([X, (X + 1).rename(feature="pixel")], axis=0), ShapeError, "concatenate: axis 1 is"),
    (lambda: X.sum(axis="time"), ShapeError, "sum: there is no axis 'time'"),
    (lambda: PLAIN.sum(axis="time"), ShapeError, "the labels of its axes: none"),
    (lambda: X.rename(time="t"), ShapeError, "rename: there is no axis 'time'"),
    (lambda: X.rename(feature="batch"), InputError, "a label is given twice"),
    (lambda: sc.input("q", "float64", (3,), dims=("a", "b")), InputError, "has 1 axes, .* labels 2"),
    (lambda: sc.input("q", "float64", (3, 3), dims=("a", "a")), InputError, "given twice"),
    (lambda: sc.input("q", "float64", (3,), dims=(3,)), InputError, "a string or None"),
])
def test_errors(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call()
    assert "test_labels.py" in str(caught.value)


# --- xarray -----------------------------------------------------------------------------------------------------------

OUTPUTS = {"h": X @ W, "total": X.sum("feature"), "T": X.T, "flip": sc.flip(X, "batch"), "tail": X[1:],
           "mean": X.mean(), "renamed": X.rename(feature="g"), "ordered": sc.sort(X, axis="batch"), "ravel": X.ravel()}
#: Labels of results, and the axes that have coordinates.
WANTED = {"h": (("batch", "class"), ["batch"]), "total": (("batch",), ["batch"]),
          "T": (("feature", "batch"), ["feature", "batch"]), "flip": (("batch", "feature"), ["feature"]),
          "tail": (("batch", "feature"), ["feature"]), "mean": ((), []), "renamed": (("batch", "g"), ["batch", "g"]),
          "ordered": (("batch", "feature"), ["feature"]), "ravel": (("dim_0",), [])}
FEATURES = np.arange(6) * 10


def given():
    x = xr.DataArray(np.arange(12.0).reshape(2, 6), dims=("batch", "feature"),
                     coords={"batch": np.array(["a", "b"]), "feature": FEATURES})
    return x, xr.DataArray(np.ones((6, 3)), dims=("feature", "class"), coords={"feature": FEATURES})


@pytest.mark.parametrize("saved", [False, True])
def test_arrays_of_xarray(saved, tmp_path):
    f, (x, w) = sc.compile(OUTPUTS, [X, W]), given()
    if saved:
        f.save(tmp_path / "f")
        f = sc.load(tmp_path / "f")
    plain = f(x.values, w.values)
    assert type(plain["h"]) is np.ndarray
    for _ in range(3):  # later calls of plain arrays are native ones
        out = f(x.transpose("feature", "batch"), w)
        for name, (dims, coords) in WANTED.items():
            assert (out[name].dims, sorted(out[name].coords)) == (dims, sorted(coords)), name
            np.testing.assert_array_equal(out[name].values, plain[name])
        assert list(out["h"].coords["batch"].values) == ["a", "b"]
        assert type(f(x.values, w.values)["h"]) is np.ndarray


def test_states_and_names():
    s = sc.shared(np.zeros(6), "s")
    f, (x, _) = sc.compile(X.sum(0) + s, [X], updates={s: s + 1}), given()
    assert f(x=x).dims == ("feature",) and f({"x": x}).dims == ("feature",)
    np.testing.assert_array_equal(s.get_value(), 2)


def test_without_labels_axes_are_by_position():
    x, _ = given()
    out = sc.compile(PLAIN * 2, [PLAIN])(x)
    assert out.dims == ("dim_0", "dim_1")
    np.testing.assert_array_equal(out.values, x.values * 2)


def test_wrong_arrays_of_xarray():
    f, (x, w) = sc.compile(X @ W, [X, W]), given()
    other = xr.DataArray(x.values, dims=("batch", "pixel"))
    with pytest.raises(ShapeError, match=r"x has the axes \(batch, feature\), .* axes \(batch, pixel\) was given"):
        f(other, w)
    with pytest.raises(InputError, match="different coordinates along 'feature'"):
        f(x, xr.DataArray(w.values, dims=("feature", "class"), coords={"feature": FEATURES + 1}))
