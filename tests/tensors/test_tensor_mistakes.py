"""Mistakes with values: the kind of error, its words, and the user's line in it."""

import numpy as np
import pytest

import symc as sc
from symc.tensors.inputs import input as sc_input

X, Y = sc_input("x", "f64", (3, 4)), sc_input("y", "f64", (5,))
MISTAKES = [
    (lambda: X + Y, sc.ShapeError, "add: operand shapes differ"),
    (lambda: X @ Y, sc.ShapeError, "matmul: operand shapes differ"),
    (lambda: np.dot(X, X), sc.ShapeError, "dot: operand shapes differ"),
    (lambda: X.reshape(5, 2), sc.ShapeError, "12 elements do not fit shape"),
    (lambda: X.reshape(5, -1), sc.ShapeError, "do not divide"),
    (lambda: X.reshape(-1, -1), sc.ShapeError, "at most one"),
    (lambda: X.sum(axis=2), sc.ShapeError, "no axis 2 among 2"),
    (lambda: X.sum(axis=(0, 0)), sc.ShapeError, "given twice"),
    (lambda: np.transpose(X, (0,)), sc.ShapeError, "do not name the 2 axes"),
    (lambda: np.squeeze(X, 0), sc.ShapeError, "axis 0 has size 3, not 1"),
    (lambda: np.concatenate([X, Y]), sc.ShapeError, "numbers of axes differ"),
    (lambda: np.concatenate([X, X[:, 1:]]), sc.ShapeError, "axis 1 differs"),
    (lambda: np.stack([X, Y]), sc.ShapeError, "axes differ"),
    (lambda: np.split(X, 2), sc.ShapeError, "does not divide into 2"),
    (lambda: np.broadcast_to(X, (2, 4)), sc.ShapeError, "does not broadcast"),
    (lambda: np.einsum("ij,jk", X, X), sc.ShapeError, "sizes differ: 4 and 3"),
    (lambda: np.einsum("ijk", X), sc.ShapeError, "3 labels for 2 axes"),
    (lambda: np.einsum("ij->z", X), sc.ShapeError, "output label 'z'"),
    (lambda: np.einsum("i_", X), sc.ShapeError, "is no label"),
    (lambda: X & 1.0, sc.DTypeError, "bitwise_and is not defined for f64"),
    (lambda: (X > 0) - (X > 1), sc.DTypeError, "subtract is not defined for bool"),
    (lambda: X + "a", TypeError, ""),
    (lambda: np.add(X, "a"), sc.DTypeError, "is not a number"),
    (lambda: X.astype("datetime64[s]"), sc.DTypeError, "not supported"),
    (lambda: sc.input("z", "nonsense"), sc.DTypeError, "not a dtype"),
    (lambda: X.at[0].set([1.0, 2.0]), sc.ShapeError, "does not broadcast"),
    (lambda: sc.asarray([[1, 2], [3]]), sc.DTypeError, "rows of equal length"),
    (lambda: np.cross(X, X), sc.ShapeError, "2 or 3 elements"),
    (lambda: np.arctan2(X + 1j, X), sc.DTypeError, "arctan2 is not defined for c128"),
    (lambda: sc.asarray(np.array(["a"])), sc.DTypeError, "not supported"),
    (lambda: sc.asarray(2**70), sc.DTypeError, "64 bits"),
    (lambda: sc.full(3, 1 + 2j, "float64"), sc.DTypeError, "does not fit f64"),
    (lambda: sc.sum(X, initial=np.complex128(1j)), sc.DTypeError, "does not fit f64"),
    (lambda: sc.pad(X, 1, constant_values=[1j, 0]), sc.DTypeError, "does not fit f64"),
    (lambda: sc.max(X, initial=[1, 2]), sc.ShapeError, "initial is one number"),
    (lambda: sc.conv(X[None], X[None], groups=X.shape[0]), sc.ShapeError, "is not made of whole numbers"),
    (lambda: sc.delete(X[0], True), sc.IndexingError, "one truth is no mask"),
    (lambda: sc.pad(X, [(1, 2, 3)]), sc.ShapeError, "1 pairs for 2 axes"),
    (lambda: sc.roll(X, 10**20, 0), sc.ShapeError, "does not fit in 64 bits"),
    (lambda: sc.insert(X[0], 10**20, 1.0), sc.ShapeError, "does not fit in 64 bits"),
    (lambda: sc.topk(X * 1j, 1), sc.DTypeError, "not defined for complex"),
    (lambda: X.astype("int64") ** -1, sc.DTypeError, "no negative powers"),
    (lambda: np.linspace(0, X, -2), sc.ShapeError, "negative"),
    (lambda: sc.input("q", "f64", (-3,)), sc.InputError, "negative"),
    (lambda: sc.input(3), sc.InputError, "must be a string"),
    (lambda: sc.matrix("m", shape=(3,)), sc.InputError, "has 2 axes"),
    (lambda: sc.input("q", "f64", ("a b",)), sc.InputError, "cannot name a size"),
    (lambda: sc.input("q", "f64", (X,)), sc.ShapeError, "must be an integer or a size"),
    (lambda: np.pad(X, 1, "strange"), sc.ShapeError, "no mode 'strange'"),
    (lambda: np.take(X, 1.5), sc.IndexingError, "must be integers"),
    (lambda: np.take(X, 30), sc.IndexingError, "out of bounds"),
]


MISTAKES += [
    (lambda: X.reshape("a"), sc.ShapeError, "must be an integer or a size"),
    (lambda: sc.zeros(("n", 2)), sc.ShapeError, "must be an integer or a size"),
    (lambda: sc.zeros(-1), sc.ShapeError, "negative"),
    (lambda: np.exp(X, dtype="int8"), sc.DTypeError, "exp is not defined for f64"),
    (lambda: np.split(X, "a"), sc.ShapeError, "must be a positive int"),
    (lambda: np.tile(X, -1), sc.ShapeError, "nothing repeats -1 times"),
    (lambda: np.repeat(X, -2), sc.ShapeError, "nothing repeats -2 times"),
    (lambda: np.repeat(X, X), sc.DTypeError, "a vector of integers"),
    (lambda: np.tensordot(X, X, "a"), sc.ShapeError, "axes are a number"),
    (lambda: np.interp(X, [1, 2], [3, 4, 5]), sc.ShapeError, "vectors of one length"),
    (lambda: sc.one_hot(X, 3), sc.DTypeError, "places are integers"),
    (lambda: sc.arange(X), sc.ShapeError, "must be known while the graph is built"),
    (lambda: np.quantile(X, 2), sc.ShapeError, "between 0 and 1"),
    (lambda: np.linalg.norm(X, "nuclear"), sc.InputError, "order 'nuclear' is not available"),
    (lambda: np.pad(X, (1, 2, 3)), sc.ShapeError, "3 pairs for 2 axes"),
    (lambda: np.where(X > 0, X, Y), sc.ShapeError, "where: operand shapes differ"),
    (lambda: sc.stack([]), sc.ShapeError, "nothing to join"),
    (lambda: np.fmax.reduce(Y, initial=0.0), sc.SymbolicValueError, "one axis and keepdims, not initial="),
    (lambda: np.hypot.reduce(X, axis=(0, 1)), sc.SymbolicValueError, "one axis and keepdims, not axis=(0, 1)"),
    (lambda: np.trim_zeros(X[0], X), sc.ShapeError, "made of 'f' and 'b'"),
    (lambda: sc.compile(X, {1: X}), sc.InputError, "the name of an argument must be a string, not 1"),
    (lambda: sc.compile(X, [X])({1: 2}), sc.InputError, "has no input 1"),
    (lambda: sc.compile(X, [X]).dump(3), sc.PipelineError, "has no stage 3"),
]


def test_errors_of_python_name_the_line():
    with pytest.raises(TypeError) as e:
        sc.add(X)
    assert any("test_tensor_mistakes.py" in note for note in e.value.__notes__)


def test_dtype_of_a_ufunc_is_that_of_its_result():
    assert np.add(X, X, dtype="float32").dtype == np.float32
    assert sc.add(X.astype("int32"), 1, dtype="float64").dtype == np.float64


@pytest.mark.parametrize("k", range(len(MISTAKES)))
def test_mistakes_carry_the_users_line(k):
    fn, kind, words = MISTAKES[k]
    with pytest.raises(kind) as e:
        fn()
    assert words in str(e.value)
    if kind is not TypeError:
        assert "test_tensor_mistakes.py:" in str(e.value)
