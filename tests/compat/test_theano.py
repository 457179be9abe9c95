"""Programs in the style of Theano's: the modules, the functions, loops, random numbers and ops of users."""

import copy
import importlib
import io
import pickle
import subprocess
import sys

import numpy as np
import pytest
import symc.compat.theano.tensor as T
from symc.compat.theano.sandbox.rng_mrg import MRG_RandomStreams
from symc.compat.theano.tensor.shared_randomstreams import RandomStreams

import symc as sc
import symc.compat.theano as theano

RNG = np.random.default_rng(0)


def compiled(outputs, *inputs, **options):
    return theano.function(list(inputs), outputs, mode="FAST_COMPILE", **options)


@pytest.mark.parametrize("name", sorted(theano.MODULES))
def test_modules_are_found_by_their_names(name):
    module = importlib.import_module(f"symc.compat.theano.{name}")
    parent, _, last = name.rpartition(".")
    named = getattr(importlib.import_module(f"symc.compat.theano.{parent}".rstrip(".")), last)
    assert named is module or last in theano.MODULES.get(parent, ())
    assert all(getattr(module, n) is v for n, v in theano.MODULES[name].items())
    with pytest.raises(AttributeError, match="symc compat theano".replace(" ", r"\.")):
        _ = module.no_such_name
    with pytest.raises(AttributeError, match="in symc"):
        _ = theano.sparse


def test_install_lets_programs_import_theano():
    code = ("import symc.compat.theano as shim; shim.install(); import theano, theano.tensor as T; "
            "from theano import function, config; from theano.tensor.signal import pool; "
            "from theano.tensor.nnet import conv2d; from theano.ifelse import ifelse; import theano.sandbox.rng_mrg; "
            "print(theano is shim, config.floatX, T.matrix().dtype)")
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                         env={"THEANO_FLAGS": "floatX=float32,device=cpu,warn.round=False", "PATH": ""}, cwd=".")
    assert out.stdout.split() == ["True", "float32", "float32"], out.stderr


def test_variables():
    x, y = T.dmatrix("x"), T.fvector()
    assert x.type is T.dmatrix and (y.dtype, y.ndim, y.name) == ("float32", 1, None)
    assert x.dtype.startswith("float") and str(x.type) == "TensorType(float64, matrix)"
    assert x == x and x != y and x in [y, x] and {x: 1}[x] == 1 and bool(x)
    with pytest.raises(TypeError):
        bool(x > 1)
    y.name = "renamed"
    assert y.name == "renamed" and T.row().broadcastable == (True, False) and T.col("c").type.ndim == 2
    assert [v.dtype for v in T.ivectors("a", "b")] == ["int32"] * 2 and len(T.scalars(3)) == 3
    assert [v.name for v in T.scalars("abc")] == ["a", "b", "c"]
    assert T.matrix("m", dtype="int64").dtype == "int64" and T.TensorType("int8", (False, True))().ndim == 2
    z = x * 2
    assert z.owner.inputs[0] is x and z.owner.op.name == "mul" and x.owner is None
    assert theano.gof.graph.inputs([z])[0] is x
    np.testing.assert_array_equal((np.ones(2) * x).eval({x: np.eye(2)}), np.eye(2))
    assert compiled(x.shape, x)(np.ones((2, 3))).tolist() == [2, 3]
    assert compiled([x.shape[0] * 2, T.prod(x.shape)], x)(np.ones((2, 3))) == [4, 6]


def test_eval_gives_an_array_of_whatever_is_symbolic():
    x, a = T.dmatrix("x"), np.ones((2, 3))
    for v in (x, x.shape, x.T.shape, x.shape[:1], x.shape[0], x.shape[0] * 2, x.sum(), x.size, x.shape + x.shape):
        found, once = v.eval({x: a}), compiled(v, x)(a)
        assert type(found) is type(once) is np.ndarray and found.tolist() == once.tolist(), v
    assert x.T.shape.eval({x: a}).tolist() == [3, 2]


@pytest.mark.parametrize("mode", ["full", "half", "valid"])
@pytest.mark.parametrize("spans", [(3, 2), (2, 2), (1, 3)])
def test_a_convolution_need_not_know_its_filters(mode, spans):
    x, w = T.dtensor4("x"), T.dtensor4("w")
    k, a = RNG.normal(size=(4, 3, *spans)), RNG.normal(size=(2, 3, 7, 6))
    unknown, known = T.nnet.conv2d(x, w, border_mode=mode), T.nnet.conv2d(x, w, filter_shape=k.shape, border_mode=mode)
    for y, z in ((unknown, known), (T.grad(T.sum(unknown ** 2), w), T.grad(T.sum(known ** 2), w))):
        found, wanted = compiled([y, z], x, w)(a, k)
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


def test_config():
    with pytest.raises(AttributeError, match="floatX"):
        theano.config.floatx = "float32"
    with pytest.raises(ValueError):
        theano.config.floatX = "int8"
    theano.config.warn.subtensor_merge_bug = False
    theano.config.compute_test_value = "off"


A, B, V = RNG.normal(size=(3, 4)), RNG.normal(size=(3, 4)), RNG.normal(size=4)
SAME = {  # what is computed, and the same by NumPy
    "arithmetic": (lambda a, b, v: a ** 2 + b / 2 - v * a // 1 + -b % 3,
                   lambda a, b, v: a**2 + b / 2 - v * a // 1 + -b % 3),
    "dimshuffle": (lambda a, b, v: a * v.dimshuffle("x", 0) + a.dimshuffle(1, 0).T, lambda a, b, v: a * v + a),
    "reductions": (lambda a, b, v: a.sum(axis=1) + T.mean(b, 1) + T.max(a, axis=[1]) + b.var(axis=1)
                   + a.norm(2, axis=1),
                   lambda a, b, v: a.sum(1) + b.mean(1) + a.max(1) + b.var(1) + np.linalg.norm(a, axis=1)),
    "compare": (lambda a, b, v: T.switch(T.gt(a, b), a, b) + T.neq(a, b) + T.and_(a > 0, b > 0),
                lambda a, b, v: np.maximum(a, b) + 1 + ((a > 0) & (b > 0))),
    "joins": (lambda a, b, v: T.concatenate([a, b], axis=0) + T.join(0, b, a), lambda a, b, v: np.r_[a + b, a + b]),
    "stack": (lambda a, b, v: T.stack(a, b) + T.stack([a, b], axis=0), lambda a, b, v: 2 * np.stack([a, b])),
    "shapes": (lambda a, b, v: a.reshape((2, 6)).flatten() + a.flatten(2).reshape((a.shape[0] * 4,)),
               lambda a, b, v: 2 * a.ravel()),
    "alloc": (lambda a, b, v: T.alloc(1.0, a.shape[0], 4) + T.zeros_like(a) + T.fill(a, 2) + T.ones((3, 4))
              + T.eye(3, 4),
              lambda a, b, v: 4 + np.eye(3, 4)),
    "subtensor": (lambda a, b, v: T.set_subtensor(a[1:, 0], 5.0) + T.inc_subtensor(b[:, [0, 0]], 1.0),
                  lambda a, b, v: np.where((np.arange(3)[:, None] >= 1) & (np.arange(4) == 0), 5, a)
                  + b + 2 * (np.arange(4) == 0)),
    "functions": (lambda a, b, v: T.sqr(a) + T.sgn(b) + T.abs_(a) + T.exp(b) + T.inv(a) + T.xlogx.xlogy0(b * 0, a),
                  lambda a, b, v: a**2 + np.sign(b) + abs(a) + np.exp(b) + 1 / a),
    "linear": (lambda a, b, v: T.dot(a, v) + T.tensordot(a, v, [[1], [0]]) + T.batched_dot(a, b),
               lambda a, b, v: 2 * a @ v + (a * b).sum(1)),
    "inverse": (lambda a, b, v: T.nlinalg.matrix_inverse(T.dot(a, a.T)) + T.slinalg.cholesky(T.dot(b, b.T)),
                lambda a, b, v: np.linalg.inv(a @ a.T) + np.linalg.cholesky(b @ b.T)),
    "many": (lambda a, b, v: T.add(a, b, v) + T.mul(a, b, 2.0) + T.clip(a, -1, 1) + T.largest(a, b, 0),
             lambda a, b, v: a + b + v + 2 * a * b + np.clip(a, -1, 1) + np.maximum(np.maximum(a, b), 0)),
    "ints": (lambda a, b, v: a[T.arange(a.shape[0]), T.cast(T.argmax(b, axis=1), "int32")] + T.nonzero(b)[0].sum(),
             lambda a, b, v: a[np.arange(3), b.argmax(1)] + 12),
    "one_hot": (lambda a, b, v: T.extra_ops.to_one_hot(T.argmax(a, 1), 4, dtype="float64") + T.cumsum(a, axis=1) - a,
                lambda a, b, v: np.eye(4)[a.argmax(1)] + a.cumsum(1) - a),
    "softmax": (lambda a, b, v: T.nnet.softmax(a) + T.nnet.softmax(v), lambda a, b, v: (
        np.exp(a) / np.exp(a).sum(1, keepdims=True) + np.exp(v) / np.exp(v).sum())),
    "nnet": (lambda a, b, v: T.nnet.relu(a, 0.1) + T.nnet.sigmoid(b) + T.nnet.softplus(a) + T.nnet.hard_sigmoid(b),
             lambda a, b, v: np.where(a > 0, a, 0.1 * a) + 1 / (1 + np.exp(-b)) + np.log1p(np.exp(a))
             + np.clip(0.2 * b + 0.5, 0, 1)),
    "losses": (lambda a, b, v: T.nnet.categorical_crossentropy(T.nnet.softmax(a), T.argmax(b, 1)),
               lambda a, b, v: np.log(np.exp(a).sum(1)) - a[np.arange(3), b.argmax(1)]),
    "broadcast": (lambda a, b, v: T.addbroadcast(a[:1], 0) * b + T.patternbroadcast(a[:1], (True, False))
                  + T.unbroadcast(b, 0),
                  lambda a, b, v: a[:1] * b + a[:1] + b),
    "split": (lambda a, b, v: T.split(a, [1, 3], 2, axis=1)[1] + T.max_and_argmax(b, 1)[0].dimshuffle(0, "x"),
              lambda a, b, v: a[:, 1:] + b.max(1)[:, None]),
    "numpy": (lambda a, b, v: np.exp(a) + np.add(b, a) + T.tril(a) + T.roll(b, 1, 0),
              lambda a, b, v: np.exp(a) + b + a + np.tril(a) + np.roll(b, 1, 0)),
}  # fmt: skip


@pytest.fixture(scope="module")
def all_same():
    """One compiled function of all, so that it is compiled once."""
    a, b, v = T.dmatrix("a"), T.dmatrix("b"), T.dvector("v")
    f = compiled({k: fn(a, b, v) for k, (fn, _) in SAME.items()}, a, b, v)
    return f(A, B, V)


@pytest.mark.parametrize("name", SAME)
def test_functions_of_tensor(name, all_same):
    want = SAME[name][1](A, B, V)
    np.testing.assert_allclose(all_same[name], np.broadcast_to(want, np.shape(all_same[name])), rtol=1e-12, atol=1e-12)


@pytest.mark.long
def test_convolution_and_pooling():
    x, w = T.tensor4("x"), theano.shared(RNG.normal(size=(2, 1, 3, 3)), borrow=True)
    whole = T.nnet.conv2d(x, w, border_mode="full", filter_shape=(2, 1, 3, 3), input_shape=(None, 1, None, None))
    pooled = T.signal.pool.pool_2d(x, (2, 2), ignore_border=False)
    mean = T.signal.pool.pool_2d(x, ws=(2, 2), ignore_border=True, mode="average_exc_pad")
    part = T.signal.pool.pool_2d(x, ws=(2, 2), ignore_border=False, mode="average_exc_pad")
    f = compiled([whole, pooled, mean, part, T.signal.conv.conv2d(x[:, 0], w[:, 0])], x)
    a = RNG.normal(size=(2, 1, 5, 5))
    got = f(a)
    from scipy.signal import convolve2d

    np.testing.assert_allclose(got[0][1, 1], convolve2d(a[1, 0], w.get_value()[1, 0]), atol=1e-12)
    assert got[1].shape == (2, 1, 3, 3) and got[1][0, 0, 2, 2] == a[0, 0, 4, 4]
    np.testing.assert_allclose(got[2][0, 0, 1, 1], a[0, 0, 2:4, 2:4].mean())
    np.testing.assert_allclose(got[3][0, 0, 2, 1], a[0, 0, 4, 2:4].mean())
    np.testing.assert_allclose(got[4][0, 1], convolve2d(a[0, 0], w.get_value()[1, 0], "valid"), atol=1e-12)


def test_states_change_their_sizes():
    w = theano.shared(np.ones(2), name="w")
    one = theano.shared(np.ones((1, 2)), broadcastable=(True, False))
    x = T.matrix("x")
    f = compiled((x * w + one).sum(), x, updates=[(w, w + 1)])
    assert f(np.ones((3, 2))) == 12 and w.get_value().tolist() == [2, 2]
    w.set_value(np.ones(3), borrow=True)
    one.set_value(np.ones((1, 3)))
    assert f(np.ones((1, 3))) == 6
    row = theano.shared(np.ones((1, 2)))
    with pytest.raises(ValueError):
        compiled(x + row, x)(np.ones((3, 2)))
    with pytest.raises(TypeError):
        theano.shared(x)


def test_function_and_its_arguments():
    x, y = T.dscalars("x", "y")
    w = theano.shared(10.0, "w")
    f = theano.function([x, theano.In(y, value=2), theano.Param(T.dscalar("z"), default=w, name="z")],
                        theano.Out(x * y, borrow=True), on_unused_input="ignore", name="f")
    assert f(3) == 6 and f(3, y=4) == 12 and f(x=1, z=0) == 2 and f.name == "f"
    for wrong in (dict(q=1), {}):
        with pytest.raises(TypeError):
            f(**wrong)
    with pytest.raises(theano.UnusedInputError, match="not part of the graph"):
        theano.function([x, y], x, on_unused_input="raise")
    with pytest.warns(UserWarning, match="not part of the graph"):
        theano.function([x, y], x, on_unused_input="warn")
    assert theano.function([x], [], updates=[(w, x)])(10.0) == []
    assert theano.function([x], None, updates={w: x})(10.0) is None
    i = T.ivector()
    assert compiled(i, i, allow_input_downcast=True)([1.5, 2.5]).tolist() == [1, 2]
    with pytest.raises(theano.MissingInputError):
        compiled(x + y, x)
    assert compiled({"a": x, "b": -x}, x)(1.0) == {"a": 1, "b": -1}
    assert compiled(x + y, x, givens=[(y, w * 2)])(1.0) == 21
    total = theano.function([x, theano.In(y, value=0.0, update=x + y)], y * 1)
    assert [float(np.ravel(total(k))[0]) for k in (1, 2, 3)] == [0, 1, 3]


def test_copies_and_pickles_of_functions():
    state, other = theano.shared(0), theano.shared(5)
    inc = T.lscalar("inc")
    add = compiled(state, inc, updates=[(state, state + inc)])
    assert add(3) == 0 and add.copy(swap={state: other})(1) == 5 and other.get_value() == 6 and state.get_value() == 3
    assert add.copy(delete_updates=True)(3) == 3 and state.get_value() == 3
    again = pickle.loads(pickle.dumps(add))
    assert again(1) == 3 and again(1) == 4 and state.get_value() == 3
    assert copy.deepcopy([state])[0].get_value() == 3
    assert add[state] == 3 and len(add.maker.fgraph.outputs) == 1 and add.maker.fgraph.toposort()


def test_logistic_regression():
    """The program that everyone has written: shared data, minibatches by givens, updates, early stopping."""
    data, labels = RNG.normal(size=(60, 5)), RNG.integers(0, 3, 60)
    data[:, :3] += 3 * np.eye(3)[labels]
    set_x = theano.shared(np.asarray(data, dtype=theano.config.floatX), borrow=True)
    set_y = T.cast(theano.shared(np.asarray(labels, dtype=theano.config.floatX), borrow=True), "int32")
    index, x, y = T.lscalar(), T.matrix("x"), T.ivector("y")
    W, b = theano.shared(np.zeros((5, 3)), "W", borrow=True), theano.shared(np.zeros(3), "b", borrow=True)
    p = T.nnet.softmax(T.dot(x, W) + b)
    cost = -T.mean(T.log(p)[T.arange(y.shape[0]), y])
    assert y.dtype.startswith("int")
    batch = {x: set_x[index * 20: (index + 1) * 20], y: set_y[index * 20: (index + 1) * 20]}
    gradients = [T.grad(cost=cost, wrt=v) for v in (W, b)]
    train = theano.function([index], cost, givens=batch,
                            updates=[(v, v - 0.5 * g) for v, g in zip((W, b), gradients, strict=True)])
    errors = theano.function(inputs=[index], outputs=T.mean(T.neq(T.argmax(p, axis=1), y)), givens=batch)
    first = [train(i) for i in range(3)]
    last = [[train(i) for i in range(3)] for _ in range(30)][-1]
    assert np.mean(last) < 0.3 * np.mean(first) and np.mean([errors(i) for i in range(3)]) < 0.1
    model = pickle.loads(pickle.dumps({"W": W, "x": x, "p": p}))
    np.testing.assert_allclose(theano.function([model["x"]], model["p"])(data), theano.function([x], p)(data))


# --- derivatives ------------------------------------------------------------------------------------------------------


def test_derivatives():
    x, v, M = T.dvector("x"), T.dvector("v"), T.dmatrix("M")
    y = T.sum(x ** 3)
    gx = T.grad(y, x)
    h = T.sum(T.tanh(x) * theano.gradient.disconnected_grad(x))
    known = T.grad(None, x, known_grads={x ** 2: v})
    outs = [gx, theano.gradient.jacobian(gx, x), T.hessian(y, x), T.Rop(gx, x, v), T.Lop(x ** 2, x, v),
            T.grad(h, [x])[0], T.grad(y * T.sum(x), x, consider_constant=[y]), known,
            T.grad(T.sum(theano.gradient.grad_clip(x, -1, 1) * 5), x), T.Rop(T.dot(x, M), M, M),
            T.grad(y, v, disconnected_inputs="ignore")]  # fmt: skip
    a, b = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    got = compiled(outs, x, v, M)(a, b, np.eye(2))
    want = [3 * a**2, np.diag(6 * a), np.diag(6 * a), 6 * a * b, 2 * a * b, a / np.cosh(a) ** 2, np.full(2, 9.0),
            2 * a * b, np.ones(2), a, np.zeros(2)]
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-12)
    with pytest.raises(theano.gradient.DisconnectedInputError):
        T.grad(y, v)
    assert isinstance(T.grad(y, (x,)), tuple)
    theano.gradient.verify_grad(lambda t: T.sum(T.exp(t)), [a])


# --- loops ------------------------------------------------------------------------------------------------------------


def test_scans():
    s, x0, n = T.dvector("s"), T.dscalar("x0"), T.iscalar("n")
    sums, none = theano.scan(lambda v, acc: v + acc, sequences=s, outputs_info=x0)
    fib, _ = theano.scan(lambda a, b, k: a + b + k, outputs_info=[dict(initial=s[:2], taps=[-2, -1])],
                         non_sequences=[x0], n_steps=n)
    taps, _ = theano.scan(lambda before, now, after: after - before + 0 * now,
                          sequences=dict(input=s, taps=[-1, 0, 1]))
    back, _ = theano.scan(lambda v, acc: 2 * acc + v, sequences=[s], outputs_info=[np.float64(0)], go_backwards=True)
    short, _ = theano.scan(lambda v, k: v * k, sequences=[s, T.arange(1000)], outputs_info=None)
    ends, _ = theano.scan(lambda p: (p * 2, theano.scan_module.until(p * 2 > 20)), outputs_info=x0, n_steps=100)
    several, _ = theano.scan(lambda v, a, b: [a + v, b * v, v], sequences=s, outputs_info=[x0, x0, None], n_steps=2)
    power, _ = theano.reduce(lambda v, acc: acc * v, s, x0)
    folded, _ = theano.foldr(lambda v, acc: acc - v, s, x0)
    mapped, _ = theano.map(lambda v: v ** 2, s)
    once, _ = theano.scan(lambda v: v, sequences=s, return_list=True)
    assert none == {} and isinstance(once, list)
    f = compiled([sums, fib, taps, back, short, ends, *several, power, folded, mapped], s, x0, n)
    a = np.array([1.0, 2, 3, 4])
    want = [1 + np.cumsum(a), [4, 7, 12], [2, 2], [4, 11, 24, 49], a * np.arange(4), [2, 4, 8, 16, 32], [2, 4], [1, 2],
            [1, 2], 24, -9, a**2]
    for g, w in zip(f(a, 1.0, 3), want, strict=True):
        np.testing.assert_allclose(g, w)
    with pytest.raises(sc.SymcError, match="n_steps"):
        theano.scan(lambda p: p, outputs_info=x0)
    with pytest.raises(sc.SymcError, match="2 entries"):
        theano.scan(lambda p, q: p, outputs_info=[x0, x0], n_steps=2)


def test_states_and_random_numbers_in_loops():
    k = theano.shared(0)
    n = T.iscalar("n")
    results, updates = theano.scan(lambda: {k: k + 1}, n_steps=n)
    assert results is None
    count = theano.function([n], [], updates=updates)
    count(5)
    assert k.get_value() == 5
    rng = RandomStreams(7)
    flips, updates = theano.scan(lambda p: rng.binomial(size=p.shape, n=1, p=p, dtype=p.dtype), n_steps=20,
                                 non_sequences=None, outputs_info=[None], sequences=T.ones((20, 3)) * 0.5)
    draw = theano.function([], flips, updates=updates)
    a, b = draw(), draw()
    assert {*a.ravel()} == {0, 1} and (a != b).any() and (a[0] != a[1:]).any()


def test_derivatives_through_loops():
    x, w = T.dvector("x"), T.dscalar("w")
    states, _ = theano.scan(lambda v, h: T.tanh(w * h + v), sequences=x, outputs_info=[T.zeros(())])
    cut, _ = theano.scan(lambda v, h: T.tanh(w * h + v), sequences=x, outputs_info=[T.zeros(())], truncate_gradient=2)
    i = T.arange(x.shape[0])
    rows, _ = theano.scan(lambda i, y, x: T.grad(y[i], x), sequences=i, non_sequences=[x ** 2, x])
    f = compiled([T.grad(states[-1], w), T.grad(cut[-1], w), T.grad(cut[-1], x), cut, states, rows], x, w)
    a = np.array([0.1, 0.2, 0.3, 0.4])
    full, short, by_x, same, these, jac = f(a, 0.5)
    h = [0.0]
    for v in a:
        h.append(np.tanh(0.5 * h[-1] + v))
    slope = [1 - v**2 for v in h]
    np.testing.assert_allclose(short, slope[4] * (h[3] + 0.5 * slope[3] * h[2]))
    assert abs(full - short) > 1e-3 and by_x[:2].tolist() == [0, 0]
    np.testing.assert_allclose(same, these)
    np.testing.assert_allclose(jac, np.diag(2 * a))


@pytest.mark.long
def test_contrastive_divergence():
    """A Gibbs chain with samples as a loop, whose end is constant to the gradient."""
    rng = MRG_RandomStreams(seed=3)
    v, W = T.matrix("v"), theano.shared(RNG.normal(size=(6, 4)) * 0.1, "W")

    def step(v0):
        h = rng.binomial(size=None, n=1, p=T.nnet.sigmoid(T.dot(v0, W)), dtype=theano.config.floatX)
        mean = T.nnet.sigmoid(T.dot(h, W.T))
        return [mean, rng.binomial(size=mean.shape, n=1, p=mean, dtype=theano.config.floatX)]

    (means, chain), updates = theano.scan(step, outputs_info=[None, v], n_steps=3)
    end = chain[-1]
    energy = lambda u: -T.log(1 + T.exp(T.dot(u, W))).sum()
    cost = (energy(v) - energy(end)) / v.shape[0]
    updates[W] = W - 0.1 * T.grad(cost, W, consider_constant=[end])
    train = theano.function([v], [cost, means], updates=updates)
    before = W.get_value()
    for _ in range(3):
        value, shown = train(RNG.integers(0, 2, (10, 6)) * 1.0)
    assert np.isfinite(value) and shown.shape == (3, 10, 6) and (W.get_value() != before).all()


def test_ifelse():
    a, b, x = T.dscalars("a", "b", "x")
    one = theano.ifelse.ifelse(T.lt(a, b), x * 2, x * 3)
    two = theano.ifelse.ifelse(T.lt(a, b), [x, x + 1], [x - 1, x])
    f = compiled([one, *two], a, b, x)
    assert f(1, 2, 5) == [10, 5, 6] and f(2, 1, 5) == [15, 4, 5]


# --- random numbers ---------------------------------------------------------------------------------------------------


def test_random_streams():
    rng = RandomStreams(seed=234)
    u, n = rng.uniform((2, 2)), rng.normal((2, 2), avg=3.0, std=0.1)
    f, g = compiled(u), compiled(n, no_default_updates=True)
    zero = compiled(u + u - 2 * u)
    assert (f() != f()).all() and (g() == g()).all() and abs(zero()).max() == 0 and abs(g() - 3).max() < 1
    state = u.rng.get_value().get_state()
    first = f()
    value = u.rng.get_value(borrow=True)
    value.set_state(state)
    u.rng.set_value(value, borrow=True)
    assert (f() == first).all()
    value.seed(1)
    u.rng.set_value(value)
    a = f()
    value.seed(1)
    u.rng.set_value(value)
    assert (f() == a).all()
    rng.seed(5)
    b = f()
    rng.seed(5)
    assert (f() == b).all()
    other = RandomStreams(seed=9)
    w = compiled(other.uniform((2, 2)))
    other.state_updates[0][0].set_value(rng.state_updates[0][0].get_value())
    assert (w() == f()).all()


@pytest.mark.long
def test_distributions():
    rng = MRG_RandomStreams(1)
    x = T.dmatrix()
    draws = {
        "binomial": rng.binomial((500,), n=4, p=0.5), "integers": rng.random_integers((500,), 1, 3), "like":
        rng.binomial(p=x), "multinomial": rng.multinomial(pvals=x), "choice": rng.choice((500,), a=3), "poisson":
        rng.poisson((500,), lam=2.0), "permutation": rng.permutation((3,), n=5), "shuffled":
        rng.shuffle_row_elements(x), "truncated": rng.truncated_normal((500,)), "float":
        rng.uniform((5,), dtype="float32"),
    }  # fmt: skip
    p = np.array([[0.1, 0.9], [0.5, 0.5]])
    got = compiled(draws, x)(p)
    assert got["binomial"].min() >= 0 and got["binomial"].max() == 4 and got["binomial"].dtype == np.int64
    assert {*got["integers"]} == {1, 2, 3} and {*got["choice"]} == {0, 1, 2} and got["like"].shape == (2, 2)
    assert got["multinomial"].sum(1).tolist() == [1, 1] and abs(got["truncated"]).max() <= 2
    assert (np.sort(got["permutation"], 1) == np.arange(5)).all() and got["float"].dtype == np.float32
    assert (np.sort(got["shuffled"], 1) == p).all() and abs(got["poisson"].mean() - 2) < 0.5


# --- printing, ops of users, modes ------------------------------------------------------------------------------------


def test_printing(tmp_path, capsys, monkeypatch):
    x, y = T.dscalars("x", "y")
    assert theano.pp(x + y * 2) == "(x + (y * TensorConstant{2.0}))"
    assert "mul [id C]" in theano.printing.debugprint(x + y * 2, file="str")
    out = io.StringIO()
    f = compiled(theano.printing.Print("seen", attrs=["__str__", "shape"])(x) * 2, x)
    theano.printing.debugprint([f, x], file=out)
    assert "func @" in out.getvalue() and "x [id A]" in out.getvalue()
    lines = []
    monkeypatch.setattr(sc.debug.hooks, "print", lambda *a: lines.append(str(a)))
    assert f(3.0) == 6 and "seen __str__ = 3.0" in lines[0] and "seen shape = ()" in lines[0]
    theano.printing.pydotprint(f, outfile=str(tmp_path / "a.dot"))
    theano.printing.pydotprint(x + y, outfile=str(tmp_path / "a.png"))
    assert "digraph" in (tmp_path / "a.dot").read_text() and (tmp_path / "a.html").exists()


class Scaled(theano.Op):
    __props__ = ("factor",)

    def __init__(self, factor):
        self.factor = factor

    def make_node(self, x):
        x = T.as_tensor_variable(x)
        return theano.Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0] * self.factor

    def infer_shape(self, node, input_shapes):
        return input_shapes

    def grad(self, inputs, output_grads):
        return [output_grads[0] * self.factor]

    def R_op(self, inputs, eval_points):
        return self.grad(inputs, eval_points)


def test_ops_of_users():
    x, v = T.dmatrix(), T.dmatrix()
    y = Scaled(3)(x)

    @theano.compile.ops.as_op(itypes=[T.dmatrix, T.dmatrix], otypes=[T.dmatrix],
                              infer_shape=lambda node, shapes: [(shapes[0][0], shapes[1][1])])
    def product(a, b):
        return a @ b

    f = compiled([y, T.grad(T.sum(y ** 2), x), T.Rop(y, x, v), product(x, v)], x, v)
    a, b = np.arange(4.0).reshape(2, 2), np.ones((2, 2))
    for got, want in zip(f(a, b), [3 * a, 18 * a, 3 * b, a @ b], strict=True):
        np.testing.assert_allclose(got, want)
    assert Scaled(3) == Scaled(3) != Scaled(4) and str(Scaled(3)) == "Scaled{factor=3}"
    with pytest.raises(TypeError):
        product(x, T.dvector())


def test_modes_and_clones():
    x = T.dvector("x")
    f = theano.function([x], T.log(x), mode=theano.compile.nanguardmode.NanGuardMode(nan_is_error=True))
    with pytest.raises(sc.NonFiniteError):
        f([-1.0])
    for mode in ("FAST_RUN", "DebugMode", theano.Mode(optimizer=None), theano.Mode(linker="cvm"), None, "NanGuardMode"):
        assert theano.function([x], x * 2, mode=mode)([1.0])[0] == 2
    with pytest.raises(NotImplementedError, match="trace"):
        theano.compile.MonitorMode(pre_func=print)
    y = T.dvector()
    assert compiled(theano.clone(x * 2, {x: y + 1}), y)([1.0])[0] == 4
    many = theano.OrderedUpdates([(1, 2)]) + theano.OrderedUpdates([(3, 4)])
    assert dict(many) == {1: 2, 3: 4} and theano.scalar.upcast("int32", "float32") == "float64"


def test_ifelse_computes_one_branch_and_graphs_are_ops():
    a, x, y = T.dscalar("a"), T.dmatrix("x"), T.dmatrix("y")
    f = theano.function([a, x, y], theano.ifelse.ifelse(a > 0, T.dot(x, y).sum(), a))
    assert f(2.0, np.ones((2, 2)), np.ones((2, 2))) == 8 and f(-2.0, np.ones((2, 2)), np.ones((2, 2))) == -2
    assert "dot" not in str(f).split("cond")[0]  # it is in its branch
    p, q, r = T.dscalars("p", "q", "r")
    op = theano.OpFromGraph([p, q, r], [p + q * r])
    total = op(p, q, r) + op(r, q, p)
    assert theano.function([p, q, r], [total, T.grad(total, q)])(1.0, 2.0, 3.0) == [12.0, 4.0]
