"""Convolution and pooling: values and derivatives against PyTorch, unknown sizes, batches, plans, mistakes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import symc as sc
from symc.errors import DTypeError, ShapeError
from symc.ir.op import lookup
from symc.testing import assert_fires, assert_kernels
from tests.nn.conv_cases import CONV, POOL, TRANSPOSE, golden, numbers, operands

GOLDEN = golden()


def leaves(arrays, symbolic=(), dtype="float64"):
    """An input for each array; the shape of the first has names for the axes in ``symbolic``."""
    return [sc.input(f"x{k}", dtype, shape=tuple(f"s{i}" if not k and i in symbolic else n
                                                 for i, n in enumerate(a.shape)))
            for k, a in enumerate(arrays)]


def compare(name: str, fn, arrays, mode: str) -> None:
    """The result and its gradients: by the references with all sizes known, compiled with names for them."""
    xs = leaves(arrays, () if mode == "reference" else (0, *range(2, arrays[0].ndim)))
    y = fn(*xs)
    grads = sc.grad((y * sc.asarray(numbers(GOLDEN[f"{name}/0"].shape, 9))).sum(), xs)
    for k, got in enumerate(sc.compile([y, *grads], xs, mode=mode)(*arrays)):
        np.testing.assert_allclose(got, GOLDEN[f"{name}/{k}"], rtol=1e-13, atol=1e-13)


MODES = pytest.mark.parametrize("mode", ["reference", "default"])


@MODES
@pytest.mark.parametrize("name", CONV)
def test_conv(name: str, mode: str) -> None:
    compare(f"conv/{name}", lambda x, w, b=None: sc.conv(x, w, b, **CONV[name][3]), operands(CONV[name]), mode=mode)


@MODES
@pytest.mark.parametrize("name", TRANSPOSE)
def test_conv_transpose(name: str, mode: str) -> None:
    compare(f"conv_transpose/{name}", lambda x, w, b=None: sc.conv_transpose(x, w, b, **TRANSPOSE[name][3]),
            operands(TRANSPOSE[name]), mode=mode)


@MODES
@pytest.mark.parametrize("name", POOL)
def test_pool(name: str, mode: str) -> None:
    family, shape, window, options = POOL[name]
    compare(f"{family}/{name}", lambda x: getattr(sc, family)(x, window, **options), [numbers(shape, 0)], mode=mode)


def network(x, w, v):
    h = sc.max_pool(sc.relu(sc.conv(x, w, padding=1)), 2)
    return sc.avg_pool(sc.conv(h, v, stride=2, padding=1, groups=2), 2, stride=1)


@pytest.mark.parametrize("backend", ["llvm", "numba"])
def test_both_backends_compile_all_kernels(backend: str) -> None:
    arrays = [numbers((2, 2, 9, 8), 1), numbers((3, 2, 3, 3), 2)]
    xs = leaves(arrays, (0, 2, 3))
    y = sc.max_pool(sc.conv(*xs, stride=2, padding=1), 2)
    outs = [y, *sc.grad(y.sum(), xs)]
    want = sc.compile(outs, xs, mode="reference")(*arrays)
    f = sc.compile(outs, xs, backend=backend)
    for a, b in zip(f(*arrays), want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
    assert "reference" not in f.plan


def test_one_compile_serves_every_size() -> None:
    shapes = [(1, 2, 9, 9), (4, 2, 3, 3), (4, 2, 2, 3)]
    x, w, v = leaves([np.zeros(s) for s in shapes], (0, 2, 3), "float32")
    outs = [network(x, w, v), sc.grad(network(x, w, v).sum(), w)]
    f, slow = sc.compile(outs, [x, w, v]), sc.compile(outs, [x, w, v], mode="reference")
    w_, v_ = numbers((4, 2, 3, 3), 2).astype("f4"), numbers((4, 2, 2, 3), 3).astype("f4")
    f(numbers((1, 2, 9, 9), 0).astype("f4"), w_, v_)
    before = f.compile_count
    for n, h, k in ((3, 8, 11), (1, 6, 6), (0, 9, 8), (5, 7, 6)):
        image = numbers((n, 2, h, k), n).astype("f4")
        for a, b in zip(f(image, w_, v_), slow(image, w_, v_), strict=True):
            assert a.shape == b.shape
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    assert f.compile_count == before


@pytest.mark.parametrize("wrt", range(3))
def test_second_derivatives(wrt: int) -> None:
    rng = np.random.default_rng(0)  # not `numbers`: near a tie, the greatest of a window is no smooth function
    arrays = [rng.standard_normal(s) / 4 for s in ((2, 2, 6, 5), (4, 2, 3, 3), (4, 2, 2, 2))]

    def loss(*xs):
        h = sc.max_pool(sc.tanh(sc.conv(xs[0], xs[1], padding=1)), (3, 2), stride=1)
        return (sc.tanh(sc.conv(h, xs[2], groups=2, dilation=(1, 2))) ** 2).sum()

    def slope(x):
        return sc.grad(loss(*[x if k == wrt else a for k, a in enumerate(arrays)]), x)

    sc.verify_grad(lambda x: (slope(x) * numbers(arrays[wrt].shape, 7)).sum(), [arrays[wrt]], eps=1e-6)


def test_forward_mode() -> None:
    arrays = [numbers((2, 2, 8, 7), 1), numbers((4, 2, 3, 3), 2), numbers((4, 2, 2, 3), 3)]
    xs, ts = leaves(arrays), leaves(arrays)
    y = network(*xs)
    moved = sc.jvp(y, xs, ts)
    g = sc.grad((y * numbers(tuple(y.shape), 5)).sum(), xs)
    steps = [numbers(a.shape, 8 + k) for k, a in enumerate(arrays)]
    forward, *back = sc.compile([moved, *g], [*xs, *ts])(*arrays, *steps)
    one = (forward * numbers(forward.shape, 5)).sum()
    np.testing.assert_allclose(one, sum((b * s).sum() for b, s in zip(back, steps, strict=True)), rtol=1e-12)


@pytest.mark.parametrize("batched", [b for b in itertools.product((0, None), repeat=3) if any(k == 0 for k in b)])
def test_vmap(batched: tuple) -> None:
    """Over samples, over filters, over both: the same as one after another, also of the gradient."""
    shapes = [(2, 2, 8, 7), (4, 2, 3, 3), (4, 2, 2, 3)]
    arrays = [numbers((3, *s) if k == 0 else s, i) for i, (s, k) in enumerate(zip(shapes, batched, strict=True))]

    def both(*xs):
        return [network(*xs), *sc.grad(network(*xs).sum(), list(xs))]

    xs = leaves(arrays)
    got = sc.compile(list(sc.vmap(both, in_axes=batched)(*xs)), xs, mode="reference")(*arrays)
    one = leaves([np.zeros(s) for s in shapes])
    f = sc.compile(both(*one), one, mode="reference")
    for k in range(3):
        for a, b in zip(got, f(*[x[k] if i == 0 else x for x, i in zip(arrays, batched, strict=True)]), strict=True):
            np.testing.assert_allclose(a[k], b, rtol=1e-12, atol=1e-12)


def test_gradient_goes_to_the_first_of_equals_and_to_nan() -> None:
    x = sc.input("x", "float64", shape=(1, 1, 2, 6))
    f = sc.compile([sc.max_pool(x, 2), sc.grad(sc.max_pool(x, 2).sum(), x)], [x])
    y, g = f(np.array([[1.0, 2, 5, 5, 1, np.nan], [2, 2, 5, 5, np.nan, 3]]).reshape(1, 1, 2, 6))
    np.testing.assert_array_equal(y.ravel(), [2, 5, np.nan])
    np.testing.assert_array_equal(g[0, 0], [[0, 1, 1, 0, 0, 1], [0, 0, 0, 0, 0, 0]])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "uint8"])
def test_dtypes(dtype: str) -> None:
    x = sc.input("x", dtype, shape=("n", 2, 6, 6))
    a = np.abs(numbers((2, 2, 6, 6), 1) * 8).astype(dtype)
    y = sc.compile(sc.max_pool(x, 2, padding=(1, 0)), [x])(a)
    padded = np.pad(a, ((0, 0), (0, 0), (1, 1), (0, 0)))
    assert y.dtype == dtype
    np.testing.assert_array_equal(y, padded.reshape(2, 2, 4, 2, 3, 2).max((3, 5)))
    if dtype.startswith("float"):
        w = numbers((3, 2, 2, 2), 2).astype(dtype)
        z = sc.compile(sc.conv(x, w), [x])(a)
        want = lookup("conv").reference(a.astype("f8"), w.astype("f8"), stride=(1, 1), dilation=(1, 1), groups=1)
        assert z.dtype == dtype
        np.testing.assert_allclose(z, want, rtol=2 * np.finfo(dtype).eps)


def test_arrays_and_numbers_and_promotion() -> None:
    x = sc.input("x", "float32", shape=("n", 2, "h", "w"))
    assert sc.conv(x, np.ones((3, 2, 2, 2))).dtype == np.float64
    assert sc.conv(x, np.ones((3, 2, 2, 2), "f4"), [1, 2, 3]).dtype == np.float32
    assert [str(s) for s in sc.conv(x, np.ones((3, 2, 3, 3), "f4"), padding="same").shape] == ["n", "3", "h", "w"]
    assert sc.max_pool(x, (1, 2, 2)).ndim == 4  # over channels too
    late = sc.Variable("late")
    f = sc.compile(sc.max_pool(sc.conv(late, np.ones((1, 1, 2, 2))), 2))
    np.testing.assert_array_equal(f(late=np.ones((1, 1, 3, 3))), np.full((1, 1, 1, 1), 4.0))


@pytest.mark.parametrize("size, stride", list(itertools.product((5, 6, 7), (1, 2, 3))))
def test_same_padding(size: int, stride: int) -> None:
    """ceil(size / stride) windows, as JAX and TensorFlow have it; the odd element of padding comes after."""
    x = sc.input("x", "float64", shape=(1, 1, "h"))
    a = numbers((1, 1, size), 4)
    y = sc.compile(sc.conv(x, numbers((1, 1, 3), 5), padding="same", stride=stride), [x])(a)
    total = max((-(-size // stride) - 1) * stride + 3 - size, 0)
    padded = np.pad(a[0, 0], (total // 2, total - total // 2))
    want = [padded[i : i + 3] @ numbers((3,), 5) for i in range(0, len(padded) - 2, stride)]
    np.testing.assert_allclose(y[0, 0], want)
    assert len(want) == -(-size // stride)


def test_debug_mode_takes_steps_apart_whose_sizes_are_halves() -> None:
    """No input of a step after pooling says what h is."""
    x, w = sc.input("x", "float64", shape=("n", 1, "h", "k")), numbers((2, 1, 3, 3), 1)
    loss = (sc.relu(sc.max_pool(sc.conv(x, w), 2)) ** 2).sum()
    f = sc.compile([loss, sc.grad(loss, x)], [x], mode="debug")
    y, g = f(numbers((2, 1, 7, 6), 2))
    assert g.shape == (2, 1, 7, 6) and y > 0


def test_nothing_needs_to_be_known() -> None:
    """`jit` traces for dtypes and ranks alone: channels, filters and windows are symbolic, too."""

    @sc.jit
    def step(x, w, v):
        return sc.value_and_grad(lambda w, v: (sc.conv(sc.conv(x, w, padding="same"), v, groups=2) ** 2).sum(),
                                 argnums=(0, 1))(w, v)

    for c, k in ((2, 3), (3, 2)):
        arrays = numbers((2, c, 6, 5), 1), numbers((4, c, k, k), 2), numbers((6, 2, k, 2), 3)
        xs = leaves(arrays)
        loss = (sc.conv(sc.conv(xs[0], xs[1], padding="same"), xs[2], groups=2) ** 2).sum()
        want = sc.compile([loss, *sc.grad(loss, xs[1:])], xs, mode="reference")(*arrays)
        value, gradients = step(*arrays)
        for a, b in zip((value, *gradients), want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)
    with pytest.raises(ShapeError, match="5 must equal"):
        step(numbers((2, 2, 6, 5), 1), numbers((4, 2, 3, 3), 2), numbers((5, 2, 3, 2), 3))


# --- how it is computed -----------------------------------------------------------------------------------------------


def test_memory_is_that_of_the_windows_of_one_sample() -> None:
    x = sc.input("x", "float32", shape=("n", 8, 20, 20))
    w = sc.input("w", "float32", shape=(4, 8, 3, 3))
    f = sc.compile(sc.conv(x, w), [x, w])
    columns = 8 * 9 * 18 * 18 * 4
    own = 8 * 400 * 4 + 4 * 18 * 18 * 4  # of a sample: x and the result
    assert f.memory(n=64) - f.memory(n=63) == own
    assert f.memory(n=1) <= own + 4 * 8 * 9 * 4 + columns + 256


def test_filters_add_up_in_place() -> None:
    x, g = sc.input("x", "float32", shape=("n", 4, "h", "k")), sc.input("w", "float32", shape=(8, 4, 3, 3))
    f = sc.compile(sc.grad(sc.conv(x, g).sum(), g), [x, g])
    assert "gemm" in f.plan and "in place" in f.plan


def test_pooling_is_one_kernel_forward() -> None:
    x = sc.input("x", "float32", shape=("n", 4, "h", "k"))
    f = sc.compile(sc.max_pool(x, 2), [x])
    assert_kernels(f, 1)
    assert "if " not in f.source.replace(" if ", "")  # selects only: it vectorizes


def test_bias_and_relu_are_part_of_pooling() -> None:
    """One kernel copies windows, another pools; nothing in between is as large as the result of the convolution."""
    x, w = sc.input("x", "float32", shape=("n", 4, 12, 12)), sc.input("w", "float32", shape=(8, 4, 3, 3))
    b = sc.input("b", "float32", shape=(8,))
    f = sc.compile(sc.max_pool(sc.relu(sc.conv(x, w, b)), 2), [x, w, b])
    assert_kernels(f, 2)
    assert_fires(f, "max_pool_of_rising", 2)


# --- mistakes ---------------------------------------------------------------------------------------------------------

X = sc.input("x", "float32", shape=("n", 3, "h", 8))
MISTAKES: dict[str, tuple[Any, type[Exception], str]] = {
    "channels": (lambda: sc.conv(X, np.ones((4, 2, 3, 3), "f4")), ShapeError, r"channels differ"),
    "rank": (lambda: sc.conv(X[0], np.ones((4, 3, 3, 3), "f4")), ShapeError, r"x has 3 axes and w 4"),
    "integers": (lambda: sc.conv(np.ones((1, 1, 3, 3), int), np.ones((1, 1, 2, 2), int)), DTypeError, r"int64|i64"),
    "window": (lambda: sc.conv(X, np.ones((4, 3, 3, 9), "f4")), ShapeError, r"window of 9 does not fit axis 3"),
    "dilation": (lambda: sc.conv(X, np.ones((4, 3, 3, 3), "f4"), dilation=4), ShapeError, r"\(dilation 4\)"),
    "groups": (lambda: sc.conv(X, np.ones((4, 3, 3, 3), "f4"), groups=2), ShapeError, r"2 groups"),
    "stride": (lambda: sc.conv(X, np.ones((4, 3, 3, 3), "f4"), stride=0), ShapeError, r"stride=0"),
    "strides": (lambda: sc.conv(X, np.ones((4, 3, 3, 3), "f4"), stride=(1, 2, 3)), ShapeError, r"3 entries"),
    "padding": (lambda: sc.conv(X, np.ones((4, 3, 3, 3), "f4"), padding="full"), ShapeError, r"padding='full'"),
    "negative": (lambda: sc.conv(X, np.ones((4, 3, 3, 3), "f4"), padding=-1), ShapeError, r"at least 0"),
    "bias": (lambda: sc.conv(X, np.ones((4, 3, 3, 3), "f4"), np.ones(3, "f4")), ShapeError, r"bias"),
    "pool": (lambda: sc.max_pool(X, (2, 9)), ShapeError, r"window of 9 does not fit axis 3"),
    "pool rank": (lambda: sc.max_pool(X[0, 0], 2), ShapeError, r"no axes"),
    "pool complex": (lambda: sc.max_pool(np.ones((1, 1, 2, 2), complex), 2), DTypeError, r"c128"),
    "average": (lambda: sc.avg_pool(np.ones((1, 1, 2, 2), int), 2), DTypeError, r"i64"),
    "of rank": (lambda: sc.nn.conv1d(X, np.ones((4, 3, 3), "f4")), ShapeError, r"conv1d: x has 4 axes, not 3"),
    "transpose": (lambda: sc.conv_transpose(X, np.ones((2, 4, 3, 3), "f4")), ShapeError, r"channels differ"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_name_the_users_line(name: str) -> None:
    wrong, error, message = MISTAKES[name]
    with pytest.raises(error, match=message) as caught:
        wrong()
    assert "test_conv.py" in str(caught.value)


def test_sizes_that_do_not_fit_in_a_call() -> None:
    for y in (sc.conv(X, np.ones((4, 3, 3, 3), "f4")), sc.max_pool(X, 3), sc.avg_pool(X, 3)):
        f = sc.compile(y, [X])
        with pytest.raises(ShapeError, match=r"x.shape\[2\] = 2 must be at least 3; a window does not fit") as caught:
            f(np.ones((1, 3, 2, 8), "f4"))
        assert "test_conv.py" in str(caught.value)


def test_a_window_that_does_not_fit_in_a_loop() -> None:
    f = sc.compile(sc.map(lambda x: sc.conv(x[None], np.ones((4, 3, 3, 3), "f4")), X), [X])
    with pytest.raises(ShapeError, match="window"):
        f(np.ones((1, 3, 2, 8), "f4"))
