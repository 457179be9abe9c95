"""Arguments that are integers: NumPy's kinds of them mean the same graph, what is no integer is refused."""

from __future__ import annotations

import numpy as np
import pytest

import symc as sc
from symc.tensors.pytree import flatten

X, V, B = sc.matrix("x", "float64"), sc.vector("v", "float64"), sc.input("b", "uint8", (3,))
CALLS = """
trace(X, {}); diagonal(X, {}); diag(V, {}); diagflat(X, {}); tril(X, {}); triu(X, {}); eye(3, k={}); tri(3, k={})
tril_indices_from(X, {}); rot90(X, {}); rot90(X, axes=(0, {})); diff(X, {}); diff(X, axis={}); sum(X, {}); mean(X, {})
argmax(X, {}); sort(X, {}); argsort(X, {}); cumsum(X, {}); swapaxes(X, 0, {}); moveaxis(X, {}, 0); rollaxis(X, 1, {})
concatenate((X, X), {}); stack((X, X), {}); expand_dims(X, {}); flip(X, {}); take(X, 0, {}); fft.fft(X, None, {})
fft.fftn(X, None, [{}]); fft.fftshift(X, {}); round(V, {}); polyder(V, {}); polyint(V, {}); unpackbits(B, count={})
linalg.matrix_power(X, {}); linalg.diagonal(X, offset={}); cov(X, ddof={}); tensordot(X, X, ([0], [{}]))
""".strip().replace("\n", "; ").split("; ")
KINDS = ["np.int64(1)", "np.uint8(1)", "np.array(1)"]
MISTAKES = ["True", "np.True_", "2.5", "np.float64(1.5)", "1j", "'1'", "b'1'", "...", "[1.5, 2]", "[[1]]", "{1}",
            "np.array([1.5, 2])", "np.array([[1]])", "(i for i in 'a')"]


def called(call: str, argument: str) -> list:
    leaves, _ = flatten(eval(compile(f"sc.{call.format(argument)}", __file__, "eval")))
    return [t.value for t in leaves]


@pytest.mark.parametrize("call", CALLS)
def test_integers_of_numpy_are_integers(call: str) -> None:
    want = called(call, "1")
    for kind in KINDS:
        assert all(a is b for a, b in zip(called(call, kind), want, strict=True)), kind


@pytest.mark.parametrize("call", CALLS)
def test_what_is_no_integer_is_refused_in_the_line_of_the_user(call: str) -> None:
    for mistake in MISTAKES:
        with pytest.raises(sc.SymcError) as error:
            called(call, mistake)
        # a text may be the label of an axis
        assert "is an int, not" in str(error.value) or f"there is no axis {mistake}" in str(error.value), mistake
        assert "test_integer_arguments.py:1" in str(error.value), mistake


def test_a_size_of_a_call_is_an_integer() -> None:
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(sc.jit(lambda x: sc.rot90(x, x.shape[0]))(x), np.rot90(x, 2))
    with pytest.raises(sc.SymbolicValueError, match="not known while the graph is built"):
        sc.rot90(X, X.shape[0])


def test_degrees_of_freedom_are_numbers() -> None:
    with pytest.raises(sc.DTypeError, match="is not a number"):
        sc.var(X, ddof="1")
    assert sc.cov(X, ddof=2.0).value is sc.cov(X, ddof=2).value
    with pytest.raises(sc.DTypeError, match="is not a number"):
        sc.arange("3")


def test_a_place_that_is_a_size_is_within_the_axis() -> None:
    f = sc.compile(sc.delete(V, V.shape[0] - 1), [V])
    np.testing.assert_array_equal(f([1.0, 2.0]), [1.0])
    with pytest.raises(sc.ShapeError, match=r"shape\[0\] = 0 must"):
        f([])
