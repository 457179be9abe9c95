"""Ragged values against loops of NumPy over rows: dtypes, rows without values, no rows, sizes that come with calls."""

import warnings

import numpy as np
import pytest
import scipy.special

import symc as sc
from symc.errors import IndexingError, InputError, ShapeError

#: Lengths of rows, of which some are empty.
LENGTHS = [[3, 0, 2, 5], [1], [], [0], [0, 0, 7], [4, 4], [2, 1, 0, 0], list(range(12))]


def rows_of(lengths, dtype="float64", more=(), seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(sum(lengths), *more)) * 3
    x = (x + 1j * x[::-1]) if np.dtype(dtype).kind == "c" else x
    values = x.astype(dtype) if np.dtype(dtype).kind != "b" else x > 0
    return sc.RaggedArray(values, np.cumsum([0, *lengths]))


def same(got, want, dtype="float64", offsets=None):
    """A result that is an array, or ragged: a list of what each row has."""
    if isinstance(got, sc.RaggedArray):
        assert len(got) == len(want)
        want = np.concatenate([*want, got.values[:0]]) if want else got.values[:0]
        got = got.values
    np.testing.assert_allclose(got, want, rtol=1e-5 if np.dtype(dtype).char in "fF" else 1e-12, atol=1e-6)


def of_some(f):
    """SciPy's function, which knows no rows without values."""
    return lambda x: f(x) if len(x) else x * 1.0


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "bool", "complex128"])
def test_functions_of_rows_are_those_of_each_row(dtype):
    r = sc.ragged.input("r", dtype)
    made = {"sum": r.sum(axis=1), "mean": r.mean(axis=1), "any": r.any(axis=1), "all": r.all(axis=1),
            "cumsum": r.cumsum(), "sort": r.sort(), "lengths": r.lengths, "total": r.sum()}
    each = {"sum": np.sum, "mean": np.mean, "any": np.any, "all": np.all, "cumsum": np.cumsum, "lengths": len,
            "sort": np.sort}
    if dtype != "complex128":
        made |= {"max": r.max(axis=1, initial=1), "min": sc.min(r, axis=1, initial=0), "argsort": r.argsort(axis=1)}
        each |= {"max": lambda x: x.max(initial=1), "min": lambda x: x.min(initial=0),
                 "argsort": lambda x: np.argsort(x, stable=True)}
    if np.dtype(dtype).kind in "fi":
        made |= {"softmax": r.softmax(), "log_softmax": sc.special.log_softmax(r, axis=1),
                 "logsumexp": r.logsumexp(axis=1)}
        each |= {n: of_some(getattr(scipy.special, n)) for n in ("softmax", "log_softmax")}
        each |= {"logsumexp": lambda x: scipy.special.logsumexp(x) if len(x) else np.exp(x[:0]).sum() - np.inf}
    f = sc.compile(made, [r])
    counts = set()
    for k, lengths in enumerate(LENGTHS):
        x = rows_of(lengths, dtype, seed=k)
        got = f(x)
        counts.add(f.compile_count)
        same(got.pop("total"), x.values.sum(), dtype)
        for name, found in got.items():
            with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
                want = [np.asarray(each[name](row)) for row in x]
            assert np.asarray(getattr(found, "values", found)).dtype == (want[0].dtype if want else found.dtype), name
            same(found, want, dtype)
    assert len(counts) == 1, "compiled again"


def test_places_in_rows_are_the_first_of_each_row():
    r = sc.ragged.input("r", shape=("n", None, 2))
    f = sc.compile([r.argmax(axis=1), np.argmin(r, axis=1), r.argmax(axis=1, keepdims=True), r.argmax()], [r])
    rng = np.random.default_rng(0)
    x = sc.RaggedArray.from_list([rng.integers(0, 3, (n, 2)).astype(float) for n in rng.integers(1, 9, 30)])
    x.values[rng.integers(0, len(x.values), 9), 1] = np.nan
    most, least, kept, whole = f(x)
    assert most.tolist() == kept[:, 0].tolist() == [np.argmax(row, 0).tolist() for row in x]
    assert least.tolist() == [np.argmin(row, 0).tolist() for row in x] and whole == np.argmax(x.values)
    with pytest.raises(sc.SymcError, match="without initial is of rows with values"):
        f([np.ones((1, 2)), np.ones((0, 2))])


@pytest.mark.parametrize("more", [(), (3,), (2, 3)])
def test_elements_meet_what_numpy_broadcasts(more):
    r, s = sc.ragged.input("r", shape=("n", None, *more)), sc.ragged.input("s", shape=("n", None, *more))
    w, c = sc.input("w", shape=("n", 1, *more)), sc.input("c", shape=more)
    made = [r + w, w * r, r - c, 2 / (1 + r * r), -abs(r), r + r, r * s, s - r, sc.where(r > 0, r, w), np.maximum(r, s),
            sc.clip(r, -1, 1), r.tanh(), np.exp(r), sc.special.expit(r), r.astype("float32"), r ** 2 % 3]
    f = sc.compile(made, [r, s, w, c])
    for k, lengths in enumerate(LENGTHS):
        x, y = rows_of(lengths, more=more, seed=k), rows_of(lengths, more=more, seed=k + 1)
        rng = np.random.default_rng(k)
        ws, cs = rng.normal(size=(len(lengths), 1, *more)), rng.normal(size=more)
        want = [[fn(a, b, v) for a, b, v in zip(x, y, ws)] for fn in (
            lambda a, b, v: a + v, lambda a, b, v: v * a, lambda a, b, v, c=cs: a - c, lambda a, b, v: 2 / (1 + a * a),
            lambda a, b, v: -abs(a), lambda a, b, v: a + a, lambda a, b, v: a * b, lambda a, b, v: b - a,
            lambda a, b, v: np.where(a > 0, a, v), lambda a, b, v: np.maximum(a, b), lambda a, b, v: np.clip(a, -1, 1),
            lambda a, b, v: np.tanh(a), lambda a, b, v: np.exp(a), lambda a, b, v: scipy.special.expit(a),
            lambda a, b, v: a.astype("float32"), lambda a, b, v: a ** 2 % 3)]
        for got, rows in zip(f(x, y, ws, cs), want, strict=True):
            same(got, rows)


def test_values_that_are_arrays():
    r, w = sc.ragged.input("r", shape=("n", None, 3)), sc.matrix("w", shape=(3, 4))
    f = sc.compile([r.sum(axis=1), r.mean(axis=1, keepdims=True), r.max(axis=1, initial=0.0), r.sum(axis=2), r @ w,
                    r.map(lambda v: v @ w), r.cumsum(), r.to_padded(9.0), r.softmax(), r.logsumexp(axis=-2)], [r, w])
    for k, lengths in enumerate(LENGTHS):
        x, m = rows_of(lengths, more=(3,), seed=k), np.random.default_rng(k).normal(size=(3, 4))
        longest = max(lengths, default=0)
        with np.errstate(all="ignore"):
            want = [x_.sum(0) for x_ in x], [x_.sum(0, keepdims=True) / len(x_) for x_ in x], [
                x_.max(0, initial=0) for x_ in x], [x_.sum(1) for x_ in x], [x_ @ m for x_ in x], [
                x_ @ m for x_ in x], [np.cumsum(x_, 0) for x_ in x], [
                np.concatenate([x_, np.full((longest - len(x_), 3), 9.0)]) for x_ in x], [
                scipy.special.softmax(x_, 0) if len(x_) else x_ for x_ in x], [np.log(np.exp(x_).sum(0)) for x_ in x]
        for got, rows in zip(f(x, m), want, strict=True):
            same(got, rows if rows or isinstance(got, sc.RaggedArray) else np.asarray(got)[:0])


def test_rows_and_places_in_them():
    r, i = sc.ragged.input("r"), sc.input("i", "int64", ("k",))
    f = sc.compile([r[i], r[::-1], r[1:3], r[-1], r[r.lengths > 2], r[i[0]]], [r, i])
    ends = sc.compile([r[:, 0], r[:, -1], r[i, 0], r[i[0], i[0] * 0]], [r, i])
    for k, lengths in enumerate(LENGTHS):
        if not lengths:
            continue
        x = rows_of(lengths, seed=k)
        picks = np.random.default_rng(k).integers(-len(lengths), len(lengths), 5)
        got = f(x, picks)
        want = [[x[p] for p in picks], list(x)[::-1], list(x)[1:3], x[-1], [row for row in x if len(row) > 2],
                x[picks[0]]]
        for g, w in zip(got, want, strict=True):
            same(g, w)
        if 0 not in lengths:
            want = [[row[0] for row in x], [row[-1] for row in x], [x[p][0] for p in picks], x[picks[0]][0]]
            for g, w in zip(ends(x, picks), want, strict=True):
                same(g, w)


def test_made_of_lengths_lists_and_padded_arrays():
    v, n = sc.vector("v"), sc.input("n", "int64", ("k",))
    p = sc.matrix("p", shape=("k", "m"))
    x = rows_of([3, 0, 2])
    f = sc.compile([sc.ragged.from_lengths(v, n).sum(axis=1), sc.ragged.from_padded(p, n),
                    sc.ragged.from_list([v, v[:1], v[2:]]), sc.ragged.from_list(list(x)).sum(axis=1),
                    sc.ragged(v, [0, 1, 5])], [v, n, p])
    padded = np.arange(12.0).reshape(3, 4)
    got = f(x.values, x.lengths, padded)
    want = [x_.sum() for x_ in x], [padded[0, :3], padded[1, :0], padded[2, :2]], [
        x.values, x.values[:1], x.values[2:]], [x_.sum() for x_ in x], [x.values[:1], x.values[1:]]
    for g, w in zip(got, want, strict=True):
        same(g, w)
    r = sc.ragged.input("r")
    square = sc.compile(r.to_padded(7.0, length=4), [r])
    assert square([[1.0], [], [2.0, 3.0]]).tolist() == [[1, 7, 7, 7], [7] * 4, [2, 3, 7, 7]]


def test_arguments_and_results_are_lists_and_ragged_arrays():
    r = sc.ragged.input("r", "int64")
    f = sc.compile({"twice": r * 2}, [r])
    for given in ([[1, 2], [], [3]], (np.array([1, 2]), [], np.array([3])), sc.RaggedArray([1, 2, 3], [0, 2, 2, 3])):
        got = f(given)["twice"]
        assert got.tolist() == [[2, 4], [], [6]] and got.dtype == np.int64 and len(got) == 3
        assert got[-1].tolist() == [6] and got[:2].tolist() == [[2, 4], []] and got[[2, 0]].tolist() == [[6], [2, 4]]
    assert f(got)["twice"].tolist() == [[4, 8], [], [12]]
    assert f([])["twice"].tolist() == []


def test_jit_and_functions_that_are_traced():
    @sc.jit
    def f(r, w):
        return sc.sum(r.softmax() * r, axis=1) + w, r

    x, w = rows_of([3, 0, 2]), np.arange(3.0)
    got, back = f(x, w)
    same(got, [np.sum(of_some(scipy.special.softmax)(row) * row) + a for row, a in zip(x, w)])
    same(back, list(x))


def test_derivatives_are_ragged():
    r, s = sc.ragged.input("r"), sc.ragged.input("s")
    losses = [sc.sum(sc.tanh(r)), sc.sum(r.softmax() * s), sc.sum(r.logsumexp(axis=1) ** 2), sc.sum(r.cumsum() * s),
              sc.sum(r.sort() * s.cumsum()), sc.sum(r.max(axis=1, initial=0.1) ** 2), sc.sum((r - r[::1]) * s),
              sc.sum(r.mean(axis=1, keepdims=True) * r), sc.sum(r.to_padded() ** 2), sc.sum(r[1] ** 3)]
    fs = [sc.compile([loss, sc.grad(loss, r)], [r, s]) for loss in losses]
    x, y = rows_of([3, 2, 4], seed=1), rows_of([3, 2, 4], seed=2)
    d = np.random.default_rng(3).normal(size=9)
    for k, f in enumerate(fs):
        _, grad = f(x, y)
        assert isinstance(grad, sc.RaggedArray) and grad.offsets.tolist() == x.offsets.tolist()
        ends = [f(sc.RaggedArray(x.values + e * d, x.offsets), y)[0] for e in (1e-6, -1e-6)]
        np.testing.assert_allclose(grad.values @ d, (ends[0] - ends[1]) / 2e-6, rtol=1e-6, atol=1e-7, err_msg=str(k))


def test_vmap_over_axes_that_are_not_ragged():
    v, o = sc.matrix("v"), sc.input("o", "int64", ("k",))
    f = sc.compile(sc.vmap(lambda row: sc.ragged(row, o).sum(axis=1))(v), [v, o])
    x, offsets = np.arange(12.0).reshape(2, 6), np.array([0, 2, 2, 6])
    same(f(x, offsets), [[1, 0, 14], [13, 0, 38]])
    each = sc.vmap(lambda row, at: sc.ragged(row, at).softmax().values)
    p = sc.input("p", "int64", ("b", "k"))
    g = sc.compile(each(v, p), [v, p])
    got = g(x, np.array([[0, 2, 6], [0, 0, 6]]))
    same(got, [np.concatenate([*map(scipy.special.softmax, (x[0, :2], x[0, 2:]))]), scipy.special.softmax(x[1])])
    with pytest.raises(ShapeError, match="values with an axis"):
        sc.vmap(lambda r: r.sum())(sc.ragged.input("r"))


def test_nothing_of_one_row_comes_into_another():
    r = sc.ragged.input("r")
    f = sc.compile([r.cumsum(), r.sum(axis=1), r.max(axis=1), r.softmax(), r.logsumexp(axis=1), r.sort()], [r])
    x = [np.array([np.inf, 1.0]), np.array([1e300, -1e300]), np.array([np.nan, 2.0]), np.array([1.0, 2.0]),
         np.array([-np.inf, -np.inf]), np.array([1e-3])]
    with np.errstate(all="ignore"):
        want = [[np.cumsum(a) for a in x], [a.sum() for a in x], [a.max() for a in x],
                [scipy.special.softmax(a) for a in x], [scipy.special.logsumexp(a) for a in x], [np.sort(a) for a in x]]
    for g, w in zip(f(x), want, strict=True):
        np.testing.assert_array_almost_equal(getattr(g, "values", g), np.concatenate(w) if np.ndim(w[0]) else w, 12)


# --- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("offsets", [[0, 3, 2, 5], [1, 5], [0, 4], [0, 6], [0, -1, 5]])
def test_wrong_offsets_are_an_error_wherever_they_are_read(offsets):
    v, o = sc.vector("v"), sc.input("o", "int64", ("k",))
    r = sc.ragged(v, o)
    for out in (r.sum(axis=1), r.lengths, r.cumsum(), r[0], r.to_padded(0), r * 2, r[::-1]):
        with pytest.raises(InputError, match="do not decrease"):
            sc.compile(out, [v, o])(np.arange(5.0), np.array(offsets))
    for make in (lambda: sc.ragged(np.arange(5.0), offsets), lambda: sc.RaggedArray(np.arange(5.0), offsets)):
        with pytest.raises(InputError, match="do not decrease"):
            make()


def test_mistakes_in_the_graph():
    r, t, m = sc.ragged.input("r", shape=("n", None)), sc.vector("t", shape=("n",)), sc.matrix("m")
    for wrong, error, said in [
        (lambda: r + t, ShapeError, r"x\[:, None\]"), (lambda: r * m, ShapeError, "would be that of rows"),
        (lambda: r.sum(axis=0), ShapeError, "axis 0"), (lambda: r.softmax(axis=0), ShapeError, "axis=1"),
        (lambda: r[:, 1:], IndexingError, "not sliced"), (lambda: sc.dot(r, t), InputError, "r.map"),
        (lambda: np.concatenate([r, r]), InputError, "r.map"), (lambda: sc.concatenate([r, t]), InputError, "r.map"),
        (lambda: bool(r), InputError, "truth"), (lambda: len(r), InputError, r"r.shape\[0\]"),
        (lambda: sc.ragged(t, sc.vector("o")), sc.DTypeError, "integers"), (lambda: sc.ragged(sc.scalar("s"), [0]),
                                                                           ShapeError, "with an axis"),
        (lambda: r.with_values(np.ones(())), ShapeError, "values"), (lambda: r.nothing, AttributeError, "nothing"),
        (lambda: sc.ragged.input("q", shape=("n", 3)), ShapeError, "axis 1"),
        (lambda: sc.ragged.from_list([[1.0], 2.0]), InputError, "row 1"),
        (lambda: sc.ragged.from_list([np.ones((2, 3)), np.ones((1, 2))]), ShapeError, "row 1"),
        (lambda: sc.ragged([1.0, 2], [0, 2]) + sc.ragged([1.0, 2], [0, 1, 2]), ShapeError, "lengths"),
    ]:
        with pytest.raises(error, match=said) as e:
            wrong()
        assert isinstance(e.value, AttributeError) or "test_ragged.py" in str(e.value) + "".join(
            getattr(e.value, "__notes__", ())), str(e.value)


def test_mistakes_in_a_call():
    r, s = sc.ragged.input("r"), sc.ragged.input("s")
    n = sc.input("n", "int64", ("k",))
    for out, inputs, given, said in [
        (r + s, [r, s], ([[1.0, 2]], [[1.0]]), "rows of equal lengths"),
        (r + s, [r, s], ([[1.0], [2.0, 3]], [[1.0, 2], [3.0]]), "rows of equal lengths"),
        (r + s, [r, s], ([[1.0], [2.0, 3]], [[1.0]]), "3"),
        (r.max(axis=1), [r], ([[1.0], []],), "rows with values"),
        (r[:, 1], [r], ([[1.0, 2], [3.0]],), "within their rows"),
        (r.to_padded(0, length=1), [r], ([[1.0, 2]],), "no longer"), (r * 2, [r], (np.ones(3),), "list of arrays"),
        (r * 2, [r], ([1.0, 2.0],), "row 0"), (r * 2, [r], ([["a"]],), "row 0"), (r[3], [r], ([[1.0]],), "3"),
        (sc.ragged.from_lengths(r.values, n), [r, n], ([[1.0, 2]], [1, 2]), "end with"),
        (sc.ragged.from_lengths(r.values, n), [r, n], ([[1.0, 2]], [-1, 3]), "do not decrease"),
    ]:
        with pytest.raises((InputError, ShapeError, IndexingError), match=said):
            sc.compile(out, inputs)(*given)


@pytest.mark.parametrize("size", [0.0, 1e5, 1e9, 1e300])
def test_softmax_and_its_kin_do_not_depend_on_how_large_all_numbers_are(size):
    """As in SciPy: a sum of the largest and of a logarithm would round the second away."""
    r = sc.ragged.input("r")
    names = ["softmax", "log_softmax"]
    made = [getattr(r, name)() for name in names]
    slopes = [sc.grad(sc.sum(m.values * (r.positions + 1.0)), r) for m in made]
    f = sc.compile([*made, *slopes], [r])
    x = [np.random.default_rng(n).standard_normal(n) + size for n in (3, 0, 1, 8)]
    found = f(x)
    for k, row in enumerate(x):
        for name, got, slope in zip(names, found, found[2:]):
            want = getattr(scipy.special, name)(row) if len(row) else row
            np.testing.assert_allclose(got[k], want, rtol=1e-12, atol=1e-14)
            p, c = scipy.special.softmax(row) if len(row) else row, np.arange(len(row)) + 1.0
            want = p * (c - (p * c).sum()) if name == "softmax" else c - p * c.sum()
            np.testing.assert_allclose(slope[k], want, rtol=1e-11, atol=1e-13)
