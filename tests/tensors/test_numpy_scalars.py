"""Where Python's numbers and strings say how (axes, sizes, names, modes), NumPy's say the same."""

import numpy as np
import pytest

import symc as sc

X = np.arange(12.0).reshape(3, 4)
CASES = {
    "input": lambda x, i, s, b: sc.input(s("y"), s("float64"), shape=(s("n"), i(4))) * 0 + x,
    "reduction": lambda x, i, s, b: sc.sum(x, axis=i(0), keepdims=b(True)),
    "axes": lambda x, i, s, b: sc.sum(x, axis=(i(0), i(1))),
    "std": lambda x, i, s, b: sc.std(x, ddof=i(1)),
    "einsum": lambda x, i, s, b: sc.einsum(s("ij->j"), x),
    "quantile": lambda x, i, s, b: sc.quantile(x, 0.5, method=s("lower")),
    "reshape": lambda x, i, s, b: sc.reshape(x, (i(-1), i(2)), order=s("C")),
    "astype": lambda x, i, s, b: sc.zeros((i(4),), dtype=s("float32")) + x.astype(s("f4")),
    "norm": lambda x, i, s, b: sc.linalg.norm(x, ord=s("fro")),
    "repeat": lambda x, i, s, b: sc.repeat(x, i(2), axis=i(0)),
    "roll": lambda x, i, s, b: sc.roll(x, i(1), axis=i(1)),
    "pad": lambda x, i, s, b: sc.pad(x, i(1), mode=s("edge")),
    "moveaxis": lambda x, i, s, b: sc.moveaxis(x, i(0), i(1)),
    "take": lambda x, i, s, b: sc.take(x, np.array([1]), axis=i(0), mode=s("clip")),
    "index": lambda x, i, s, b: x[i(1) : i(3), i(2)],
    "power": lambda x, i, s, b: x ** i(2),
    "topk": lambda x, i, s, b: sc.topk(x[0], i(2))[0],
    "creation": lambda x, i, s, b: sc.arange(i(4)) * x @ sc.eye(i(4), k=i(1)),
    "scan": lambda x, i, s, b: sc.scan(lambda c, _: (c * 2, c), x[0], length=i(3), reverse=b(True))[1],
    "fori_loop": lambda x, i, s, b: sc.fori_loop(i(0), i(3), lambda k, c: c + k, x[0]),
    "vmap": lambda x, i, s, b: sc.vmap(lambda r: sc.cumsum(r), in_axes=i(1), out_axes=i(1))(x),
    "searchsorted": lambda x, i, s, b: sc.searchsorted(x[0], x[1], side=s("right")),
    "triu": lambda x, i, s, b: sc.triu(x, k=i(1)),
    "split": lambda x, i, s, b: sc.split(x, i(2), axis=i(1))[1],
    "diff": lambda x, i, s, b: sc.diff(x, n=i(2)),
    "convolve": lambda x, i, s, b: sc.convolve(x[0], x[1], mode=s("same")),
    "meshgrid": lambda x, i, s, b: sc.meshgrid(x[0], x[1], indexing=s("ij"))[0],
    "one_hot": lambda x, i, s, b: sc.one_hot(sc.asarray([1, 2]), i(4)) @ x.T,
    "fft": lambda x, i, s, b: sc.fft.fft(x, n=i(4), axis=i(1), norm=s("ortho")),
    "eigh": lambda x, i, s, b: sc.linalg.eigh(x.T @ x, UPLO=s("U"))[0],
    "qr": lambda x, i, s, b: sc.linalg.qr(x, mode=s("r")),
    "matrix_power": lambda x, i, s, b: sc.linalg.matrix_power(x.T @ x, i(3)),
    "tensorinv": lambda x, i, s, b: sc.linalg.tensorinv((x[:, :3] + 20 * sc.eye(3)).reshape(3, 3, 1), i(1)),
    "cond": lambda x, i, s, b: sc.linalg.cond(x[:, :3] + 20 * sc.eye(3), i(1)),
    "sliding_window_view": lambda x, i, s, b: sc.sliding_window_view(sc.tile(x[0], i(50)), i(100)),
    "var": lambda x, i, s, b: sc.var(sc.tile(x[0], i(50)), ddof=i(3)),
    "nanvar": lambda x, i, s, b: sc.nanvar(sc.tile(x[0], i(50)), correction=i(3)),
    "sparse": lambda x, i, s, b: (sc.sparse.fromdense(x) ** i(2)).toarray(),
    "lstm": lambda x, i, s, b: sc.nn.lstm(sc.Params(seed=0), i(4), i(60)).transduce(x.astype("float32")),
    "ragged": lambda x, i, s, b: sc.ragged.from_lengths(x, np.array([1, 2])).sum(axis=i(2)).values,
    "sort": lambda x, i, s, b: sc.sort(x, axis=i(0), kind=s("stable")),
    "random": lambda x, i, s, b: sc.random.normal(sc.random.key(i(3)), (i(2), i(4)), dtype=s("float32")) + x[0],
}


@pytest.mark.parametrize("case", CASES)
def test_scalars_of_numpy_say_what_those_of_python_say(case):
    x = sc.input("x", "float64", shape=(3, 4))
    want = CASES[case](x, int, str, bool)
    for integer in (np.int64, np.int8):
        got = CASES[case](x, integer, np.str_, np.bool_)
        assert got.dtype == want.dtype and str(got.shape) == str(want.shape)
        if case == "input":
            continue
        a, b = sc.compile([got, want], [x], mode="reference")(X)
        np.testing.assert_array_equal(a, b)
