"""ONNX: what is written is valid, computes the same in ONNX Runtime, and reads back; what is read is checked first."""

import json
import os
import sys

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator

import symc as sc
from symc.export import onnx_file
from symc.export.onnx_nodes import OPERATORS
from symc.ir.op import all_ops
from symc.ir.types import TupleType
from symc.tensors.pytree import flatten
from symc.tensors.tensor import Tensor
from tests.export.interchange_programs import PROGRAMS

onnxruntime.set_default_logger_severity(4)
TOLERANCE = {2: 4e-3, 4: 2e-5, 8: 1e-10}


def close(have, want, slack=1):
    """Results in the same dtypes and shapes, equal up to rounding."""
    for a, b in zip(have, want, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        tolerance = slack * TOLERANCE[b.dtype.itemsize] if b.dtype.kind == "f" else 0
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance / 10)


def run(model, feeds):
    """Results by ONNX Runtime; or, where that has no kernel of the dtype, by the package's own evaluator, whose erf has
    seven digits, and which knows transposed convolutions of two axes without steps alone: of others None."""
    try:
        return onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds), 1
    except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented:
        if any(n.op_type == "ConvTranspose" for n in model.graph.node):
            return None, 1
        with np.errstate(all="ignore"):
            return ReferenceEvaluator(model).run(None, feeds), 1000


def arrays(args):
    return [np.asarray(a) for a in args]


# --- programs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_a_program(program, tmp_path):
    f, calls = program()
    f.to_onnx(tmp_path / "f.onnx")
    model = onnx.load(tmp_path / "f.onnx")
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(tmp_path / "f.onnx")
    assert [i.name for i in session.get_inputs()] == [i.name for i in f.inputs]
    back = sc.from_onnx(tmp_path / "f.onnx", mode="reference")
    start = {n: s.get_value() for n, s in f.shared.items()}
    for args in calls:
        found = session.run(None, dict(zip([i.name for i in f.inputs], arrays(args), strict=True)))
        want, again = flatten(f(*args))[0], flatten(back(*args))[0]
        new = [f.shared[o.name[:-4]].get_value() for o in model.graph.output if o.name.endswith("_new")]
        close(found, [*want, *new], slack=10)
        close(again, want, slack=10)
        for name, state in back.shared.items():
            close([state.get_value()], [f.shared[name].get_value()], slack=10)
            for s in (state, f.shared[name]):
                s.set_value(start[name])


def test_names_and_sizes_are_the_users(tmp_path):
    x, w = sc.input("x", "float32", shape=("n", 3)), sc.shared(np.ones((3, 2), "float32"), "w")
    y = x @ w
    f = sc.compile({"mean": y.mean(axis=0), "all": sc.concatenate([y, y])}, [x], updates={w: w * 2}, mode="reference")
    f.to_onnx(tmp_path / "f.onnx")
    graph = onnx.load(tmp_path / "f.onnx").graph
    dims = {v.name: [d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim]
            for v in (*graph.input, *graph.output)}
    assert dims == {"x": ["n", 3], "w": [3, 2], "mean": [2], "all": ["2*n", 2], "w_new": [3, 2]}
    session = onnxruntime.InferenceSession(tmp_path / "f.onnx")
    rows = np.ones((4, 3), "float32")
    names = [o.name for o in session.get_outputs()]
    first = dict(zip(names, session.run(None, {"x": rows}), strict=True))
    second = dict(zip(names, session.run(None, {"x": rows, "w": first["w_new"]}), strict=True))
    assert (second["all"] == 2 * first["all"]).all() and (second["w_new"] == 4).all()


def test_loops_and_branches_are_those_of_onnx(tmp_path):
    x = sc.input("x", "float64", shape=("n",))
    h, _ = sc.scan(lambda c, r: (c * 0.5 + r, None), 0.0, x)
    k = sc.while_loop(lambda s: s < 10, lambda s: s * 2 + 1, abs(h) + 1)
    f = sc.compile(sc.cond(k > 11, sc.sqrt, lambda v: v, k), [x], mode="reference")
    f.to_onnx(tmp_path / "f.onnx")
    assert {"Scan", "Loop", "If"} <= {n.op_type for n in onnx.load(tmp_path / "f.onnx").graph.node}
    assert float(sc.from_onnx(tmp_path / "f.onnx", mode="reference")(np.arange(3.0))) == float(f(np.arange(3.0)))


# --- every op ---------------------------------------------------------------------------------------------------------

OPS = [op for op in all_ops() if op.samples is not None and op.facts.custom is None and op.facts.routine is None
       and "python" not in op.traits and op.facts.kinds != "c"]


def compiled(op, operands, attrs):
    """The op on inputs of the types of these arrays."""
    attrs = dict(attrs)
    regions = attrs.pop("regions", ())
    inputs = [sc.input(f"x{k}", a.dtype, shape=a.shape) for k, a in enumerate(operands)]
    v = op(*[i.value for i in inputs], regions=regions, **attrs)
    several = isinstance(v.type, TupleType)
    return sc.compile([Tensor(r) for r in (v if several else [v])] if not several else
                      [Tensor(v[k]) for k in range(len(v.type.items))], inputs, mode="reference", name=op.name)


def samples(op, each):
    """The first samples of one combination of dtypes, and the first of each other if more than one is asked for."""
    seen = {}
    for operands, attrs in op.samples():
        operands = arrays(operands)
        key = tuple(a.dtype for a in operands)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] <= (each if len(seen) == 1 else 1) and all(d.kind != "c" and d != np.float16 for d in key):
            yield operands, attrs
            if each == 1:
                return


def functions(op, each):
    """Functions of samples, with the operands and what they give."""
    for operands, attrs in samples(op, each):
        try:
            f = compiled(op, operands, attrs)
            want = f(*operands)
        except sc.SymcError:
            continue
        yield f, operands, want


def agrees(op, path):
    """What is written says the same in other engines and when it is read; the error names the op otherwise."""
    for f, operands, want in functions(op, 3):
        try:
            f.to_onnx(path)
        except sc.ExportError as e:
            assert "ONNX has no form of" in e.what
            continue
        model = onnx.load(path)
        onnx.checker.check_model(model, full_check=True)
        names = [i.name for i in model.graph.input]
        feeds = {i.name: a for i, a in zip(f.inputs, operands, strict=True) if i.name in names}
        found, slack = run(model, feeds)
        if found is not None:
            close(found, want, slack=20 * slack)
        close(sc.from_onnx(path, mode="reference")(*operands), want, slack=20)


def has_form(op):
    for f, _, _ in functions(op, 1):
        try:
            onnx_file.onnx_model(f)
        except sc.ExportError:
            continue
        return True
    return False


def test_most_ops_have_a_form():
    without = [op.name for op in OPS if not has_form(op)]
    assert len(without) < 0.2 * len(OPS), without


@pytest.mark.long
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_an_op(op, tmp_path):
    agrees(op, tmp_path / "f.onnx")


# --- refusals and files -----------------------------------------------------------------------------------------------


def test_what_has_no_form_is_named_with_its_line(tmp_path):
    x = sc.input("x", "float64", shape=("n",))
    f = sc.compile(sc.special.jv(1.5, x), [x], mode="reference")  # here
    with pytest.raises(sc.ExportError, match="ONNX has no form of the op jv") as e:
        f.to_onnx(tmp_path / "f.onnx")
    assert e.value.where[0].file == __file__ and "sc.special.jv(1.5, x)" in e.value.where[0].text
    assert os.listdir(tmp_path) == []
    h, _ = sc.scan(lambda c, r: (sc.special.jv(2.5, c) + r, None), 0.0, x)
    with pytest.raises(sc.ExportError, match="the op jv") as e:
        sc.compile(h, [x], mode="reference").to_onnx(tmp_path / "f.onnx")
    assert "sc.special.jv(2.5, c)" in str(e.value)


@pytest.mark.parametrize("make, what", [
    (lambda x: x * 1j, "complex numbers"), (lambda x: x[x > 0], "not one graph"),
    (lambda x: sc.arange(3) ** x.astype("int64").sum(), "powers of integers"),
], ids=["complex", "measured", "powers"])
def test_refusals(make, what, tmp_path):
    x = sc.input("x", "float64", shape=("n",))
    with pytest.raises(sc.ExportError, match=what):
        sc.compile(make(x), [x]).to_onnx(tmp_path / "f.onnx")


@pytest.fixture
def file(tmp_path):
    """A model with its arrays beside it."""
    x, w = sc.input("x", "float32", shape=("n", 40)), sc.shared(np.arange(1600, dtype="float32").reshape(40, 40), "w")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(onnx_file, "IN_MODEL", 0)
        sc.compile(x @ w, [x], mode="reference", name="big").to_onnx(tmp_path / "big.onnx")
    return tmp_path / "big.onnx"


def test_large_arrays_lie_beside_the_model(file):
    rows = np.ones((2, 40), "float32")
    assert file.stat().st_size < 2000 and sorted(os.listdir(file.parent)) == [
        "big.onnx", "big.onnx.data"]
    (want,) = onnxruntime.InferenceSession(file).run(None, {"x": rows})
    close([sc.from_onnx(file, mode="reference")(rows)], [want])


def damage(change):
    def apply(file):
        model = onnx.load(file, load_external_data=False)
        change(model)
        file.write_bytes(model.SerializeToString())

    return apply


def at(key, value):
    def change(model):
        (t,) = [t for t in model.graph.initializer if t.external_data]
        next(e for e in t.external_data if e.key == key).value = value

    return damage(change)


@pytest.mark.parametrize("harm, what", [
    (lambda f: f.write_bytes(b""), "not an ONNX model"),
    (lambda f: f.write_bytes(b"no model at all"), "not an ONNX model"),
    (lambda f: f.write_bytes(f.read_bytes()[:-40]), "not an ONNX model|has not"),
    (lambda f: (f.parent / "big.onnx.data").write_bytes(b"short"), "has not 6400 bytes"),
    (at("location", "../big.onnx.data"), "of its own folder"), (at("location", "/etc/passwd"), "of its own folder"),
    (at("location", ""), "of its own folder|not a file"), (at("offset", "-5"), "has not"),
    (at("length", "7"), "has not"), (at("offset", "9" * 30), "not an ONNX model|has not"),
    (damage(lambda m: m.graph.node[0].input.append("nobody")), "not an ONNX model"),
    (damage(lambda m: m.graph.node[0].ClearField("op_type")), "not an ONNX model"),
    (damage(lambda m: setattr(m.metadata_props[0], "value", json.dumps({"states": ["no"]}))), "not about it"),
    (damage(lambda m: setattr(m.metadata_props[0], "value", "{")), "not an ONNX model"),
    (damage(lambda m: m.graph.input[0].type.tensor_type.ClearField("shape")), "not an ONNX model"),
])
def test_a_damaged_file(harm, what, file):
    harm(file)
    with pytest.raises(sc.InputError, match=what) as e:
        sc.from_onnx(file)
    assert e.value.where[0].file == __file__


def test_a_link_out_of_the_folder(file, tmp_path_factory):
    other = tmp_path_factory.mktemp("other") / "secret"
    data = file.parent / "big.onnx.data"
    other.write_bytes(data.read_bytes())
    data.unlink()
    data.symlink_to(other)
    with pytest.raises(sc.InputError, match="of its own folder"):
        sc.from_onnx(file)


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        sc.from_onnx(tmp_path / "none.onnx")
    with pytest.raises(sc.InputError, match="not a file"):
        sc.from_onnx(tmp_path)


def test_without_the_package(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "onnx", None)
    x = sc.input("x", "float64", shape=())
    with pytest.raises(sc.PackageError, match="onnx") as e:
        sc.compile(x, [x], mode="reference").to_onnx(tmp_path / "f.onnx")
    assert "symc[onnx]" in e.value.help


# --- models of others -------------------------------------------------------------------------------------------------


def read(text, tmp_path, opset=18, **weights):
    """A model from text, with random weights of the shapes given, and symc's function of it."""
    rng = np.random.default_rng(1)
    head = f'<ir_version: 8, opset_import: ["" : {opset}]>'
    model = onnx.parser.parse_model(head + text)
    for name, shape in weights.items():
        a = rng.normal(size=shape).astype("float32") if isinstance(shape, tuple) else np.asarray(shape)
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.abs(a) if name == "var" else a, name))
    onnx.checker.check_model(model)
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    return model, sc.from_onnx(path, mode="reference")


CNN = """ cnn (float[N, 3, 8, 8] image) => (float[N, 5] scores) {
  a = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (image, w, bias)
  b = BatchNormalization (a, scale, shift, mean, var)
  c = Relu (b)
  d = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (c)
  e = AveragePool <kernel_shape = [2, 2], pads = [1, 1, 0, 0]> (d)
  g = GlobalAveragePool (e)
  f = Flatten (g)
  h = Gemm <transB = 1, alpha = 0.5> (f, dense, last)
  scores = Softmax <axis = 1> (h)
}"""
BLOCK = """ block (float[batch, seq, 8] x) => (float[batch, seq, 8] y, float[k, 8] flat) {
  two = Constant <value_ints = [2]> ()
  shape = Shape (x)
  zero = Constant <value_int = 0> ()
  one = Constant <value_int = 1> ()
  b = Gather (shape, zero)
  s = Gather (shape, one)
  axes = Constant <value_ints = [0]> ()
  b1 = Unsqueeze (b, axes)
  s1 = Unsqueeze (s, axes)
  minus = Constant <value_ints = [-1]> ()
  heads = Concat <axis = 0> (b1, s1, two, minus)
  n = LayerNormalization <axis = -1> (x, scale, shift)
  q3 = MatMul (n, qkv)
  q, k, v = Split <axis = -1, num_outputs = 3> (q3)
  qh0 = Reshape (q, heads)
  kh0 = Reshape (k, heads)
  vh0 = Reshape (v, heads)
  qh = Transpose <perm = [0, 2, 1, 3]> (qh0)
  kh = Transpose <perm = [0, 2, 3, 1]> (kh0)
  vh = Transpose <perm = [0, 2, 1, 3]> (vh0)
  scores = MatMul (qh, kh)
  p = Softmax <axis = -1> (scores)
  o = MatMul (p, vh)
  ot = Transpose <perm = [0, 2, 1, 3]> (o)
  back = Reshape (ot, shape)
  h = Add (x, back)
  e = Div (h, root)
  er = Erf (e)
  er1 = Add (er, onef)
  half = Mul (h, er1)
  y = Mul (half, halff)
  bs = Mul (b1, s1)
  fl = Concat <axis = 0> (bs, minus)
  flat = Reshape (y, fl)
}"""
EXTRAS = """ extras (float[n, 4] x, int64[m] i)
    => (float[m, 4] a, float[n, 6] b, float[n, 4] c, float[r, 4] d, float[n, 4] e) {
  a = Gather <axis = 0> (x, i)
  pads = Constant <value_ints = [0, 1, 0, 1]> ()
  b = Pad <mode = "reflect"> (x, pads)
  low = Constant <value_float = -0.5> ()
  high = Constant <value_float = 0.5> ()
  clipped = Clip (x, low, high)
  zero = Constant <value_float = 0.0> ()
  positive = Greater (clipped, zero)
  leaky = LeakyRelu <alpha = 0.2> (clipped)
  c = Where (positive, clipped, leaky)
  reps = Constant <value_ints = [2, 1]> ()
  tiled = Tile (c, reps)
  starts = Constant <value_ints = [1]> ()
  ends = Constant <value_ints = [9223372036854775807]> ()
  d = Slice (tiled, starts, ends)
  shape = Shape (x)
  filled = ConstantOfShape (shape)
  total = ReduceSum <keepdims = 1> (x, starts)
  wide = Expand (total, shape)
  e = Add (wide, filled)
}"""


@pytest.mark.parametrize("text, inputs, weights", [
    (CNN, lambda r, n: {"image": r.normal(size=(n, 3, 8, 8)).astype("f4")},
     dict(w=(4, 3, 3, 3), bias=(4,), scale=(4,), shift=(4,), mean=(4,), var=(4,), dense=(5, 4), last=(5,))),
    (BLOCK, lambda r, n: {"x": r.normal(size=(n, n + 2, 8)).astype("f4")},
     dict(scale=(8,), shift=(8,), qkv=(8, 24), root=np.float32(2**0.5), onef=np.float32(1), halff=np.float32(0.5))),
    (EXTRAS, lambda r, n: {"x": r.normal(size=(n, 4)).astype("f4"), "i": r.integers(0, n, n + 1)}, {}),
], ids=["cnn", "block", "extras"])
def test_a_model_of_others(text, inputs, weights, tmp_path):
    model, f = read(text, tmp_path, **weights)
    for n in (1, 3):
        feeds = inputs(np.random.default_rng(n), n)
        found = f(**feeds)
        close(found if isinstance(found, tuple) else [found], run(model, feeds)[0], slack=10)


def test_a_recurrent_layer_and_an_older_version(tmp_path):
    text = """ rnn (float[t, b, 3] x) => (float[t, 1, b, 4] y, float[1, b, 4] h, float[1, b, 4] c) {
      y, h, c = LSTM <hidden_size = 4> (x, w, r, bias)
    }"""
    model, f = read(text, tmp_path, w=(1, 16, 3), r=(1, 16, 4), bias=(1, 32))
    x = np.random.default_rng(0).normal(size=(5, 2, 3)).astype("f4")
    close(f(x), run(model, {"x": x})[0], slack=10)
    old = " old (float[n, 3] x) => (float[n, 1] y) { z = Relu (x) y = ReduceMean <axes = [1]> (z) }"
    model, f = read(old, tmp_path, opset=11)
    close([f(x[0])], run(model, {"x": x[0]})[0])


def test_counted_and_conditional_loops(tmp_path):
    text = """ loops (float[n] x, int64 k) => (float[n] y, float[4, n] steps, float[n] z) {
      yes = Constant <value = bool {1}> ()
      four = Constant <value_int = 4> ()
      y, steps = Loop (four, yes, x) <body = counted (int64 i, bool go, float[n] s)
          => (bool go2, float[n] s2, float[n] r) {
        go2 = Identity (go)
        s2 = Add (s, x)
        r = Identity (s2)
      }>
      z = Loop (k, yes, x) <body = tested (int64 i, bool go, float[n] s) => (bool go2, float[n] s2) {
        s2 = Mul (s, two)
        zero = Constant <value_ints = [0]> ()
        total = ReduceSum <keepdims = 0> (s2, zero)
        go2 = Less (total, limit)
      }>
    }"""
    model, f = read(text, tmp_path, two=np.float32(2), limit=np.float32(20))
    for k in (2, 50):
        feeds = {"x": np.array([1, 2], "f4"), "k": np.int64(k)}
        close(f(**feeds), run(model, {n: np.asarray(a) for n, a in feeds.items()})[0])


def test_a_model_is_built_on_and_trained(tmp_path):
    text = " m (float[n, 3] x) => (float[n, 2] y) { z = MatMul (x, w) y = Tanh (z) }"
    read(text, tmp_path, w=(3, 2))
    x = sc.input("x", "float32", shape=("n", 3))
    y = sc.from_onnx(tmp_path / "m.onnx", inputs={"x": x * 2})
    g = sc.compile(sc.grad(sc.sum(y), x), [x], mode="reference")
    assert g(np.zeros((2, 3), "float32")).shape == (2, 3)
    with pytest.raises(sc.InputError, match="an input 'x', for which nothing is given"):
        sc.from_onnx(tmp_path / "m.onnx", inputs={})


def test_an_unknown_operator_is_named_with_its_node(tmp_path):
    text = ' m (float[1, 1, 2, 2] x) => (float[1, 1, 4, 4] y) { [up] y = Resize (x, , s) }'
    with pytest.raises(sc.InputError, match="node 'up' has the operator Resize, which symc does not read"):
        read(text, tmp_path, s=np.ones(4, "float32"))
    text = " m (float[2] x) => (float[3] y) { y = Add (x, w) }"
    with pytest.raises(sc.ShapeError, match=r"node 'y' \(Add\)"):
        read(text, tmp_path, w=(3,))


def test_a_result_that_is_not_read_is_named(tmp_path):
    text = " m (float[n, 4] x) => (float[n, 4] y, float[n, 1] mean) { y, mean = LayerNormalization (x, s) }"
    with pytest.raises(sc.InputError, match="its output 'mean' is not read"):
        read(text, tmp_path, s=(4,))


@pytest.mark.parametrize("op", ["Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare"])
def test_a_reduction_of_no_axes_is_of_elements(op, tmp_path):
    """What is computed of the elements and of the result is computed."""
    x = np.random.default_rng(0).uniform(0.5, 2, (2, 3)).astype("f4")
    for how in ("", "<keepdims = 0>", "<noop_with_empty_axes = 1>"):
        shape = "" if "keep" in how else "[k, l]"
        model, f = read(f" m (float[n, m] x) => (float{shape} y) {{ y = Reduce{op} {how} (x) }}", tmp_path)
        close([f(x)], run(model, {"x": x})[0])


def test_every_operator_that_is_written_is_read():
    from symc.export import onnx_ops

    known = OPERATORS.elementwise.keys() | OPERATORS.general.keys()
    assert set(onnx_ops.PLAIN.values()) <= known
