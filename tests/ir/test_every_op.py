"""Every op record against NumPy: types, values at the edges, layouts. Generated from the registry and its samples."""

from __future__ import annotations

import numpy as np
import pytest

from symc.errors import DTypeError, IndexingError, ShapeError
from symc.ir.op import Decompose, Element, Op, all_ops, is_builtin, lookup
from symc.ir.ops.index import gather
from symc.ir.ops.kernel import load, results_of
from symc.ir.ops.leaf import scalar
from symc.ir.traverse import postorder
from symc.ir.types import DTYPES, TensorType, TupleType
from symc.ir.value import fresh_input
from tests.ir.op_cases import CATALOGUE, SAMPLED, STRUCTURE, apply, assert_same, cases, evaluate, results

each = pytest.mark.parametrize("op", SAMPLED, ids=lambda op: op.name)
ELEMENTS = [(op, op.lowering.f if isinstance(op.lowering, Element) else op.facts.element) for op in SAMPLED]
ELEMENTS = [(op, form) for op, form in ELEMENTS if form]


def test_catalogue_is_complete():
    """Every op of symc's own belongs to a family, under a name of its own."""
    assert sorted(op.name for op in all_ops() if is_builtin(op)) == sorted(op.name for op in CATALOGUE)
    assert len(CATALOGUE) > 150 and {op.name for op in CATALOGUE} >= STRUCTURE


@each
def test_record_is_complete(op: Op):
    assert (op.doc.endswith(".") and op.lowering is not None) or not op.samples
    assert cases(op), "samples drive every other test"


@each
def test_reference_gives_what_is_inferred(op: Op):
    for arrays, attrs in cases(op):
        before = [a.copy() for a in arrays]
        t = op.infer(*[TensorType(a.dtype, a.shape) for a in arrays], **attrs)
        found = results(op.reference(*arrays, **attrs))
        types = t.items if isinstance(t, TupleType) else (t,)
        assert [(out.dtype, out.shape) for out in found] == [(t.dtype, t.shape) for t in types], (arrays, attrs)
        for a, b in zip(arrays, before, strict=True):
            np.testing.assert_array_equal(a, b, err_msg="the reference wrote into an operand")


@each
def test_layout_does_not_matter(op: Op):
    """Strided, reversed and read-only operands give the same as contiguous ones."""
    for arrays, attrs in cases(op):
        odd = [_strided(a) for a in arrays]
        pairs = zip(results(op.reference(*odd, **attrs)), results(op.reference(*arrays, **attrs)), strict=True)
        for got, want in pairs:
            assert_same(got, want, ulps=64)


def _strided(a: np.ndarray) -> np.ndarray:
    wide = np.zeros([2 * n for n in a.shape], a.dtype)
    view = wide[(*[slice(None, None, -2)] * a.ndim, ...)]
    view[...] = a
    view.flags.writeable = False
    return view


@pytest.mark.parametrize("op", [op for op in SAMPLED if op.facts.numpy is not None], ids=lambda op: op.name)
def test_numpy_agrees(op: Op):
    ufunc = op.facts.numpy
    for arrays, attrs in cases(op):
        if op.name == "pow" and arrays[0].dtype.kind == "i":
            arrays = [arrays[0], np.abs(arrays[1].astype("i8")).clip(0, 100).astype(arrays[1].dtype)]
        with np.errstate(all="ignore"):
            want = ufunc(*arrays, **attrs)
        assert_same(op.reference(*arrays, **attrs), np.asarray(want))


@pytest.mark.parametrize("op",
                         [op for op in SAMPLED if "elementwise" in op.traits and op.name not in ("cast", "where")
                          and op.facts.kinds],
                         ids=lambda op: op.name)
def test_what_is_not_admitted_is_refused(op: Op):
    arrays, attrs = cases(op)[0]
    for name, dtype in DTYPES.items():
        if dtype.kind not in op.facts.kinds:
            with pytest.raises(DTypeError, match=f"{op.name} is not defined for {name}"):
                op.infer(*[TensorType(dtype, (2,))] * len(arrays), **attrs)
    good = DTYPES["f64"] if "f" in op.facts.kinds else DTYPES["c128"] if "c" in op.facts.kinds else DTYPES["i64"]
    with pytest.raises(TypeError):
        op.infer(*[TensorType(good, (2,))] * (len(arrays) + 1), **attrs)
    if len(arrays) == 2:
        with pytest.raises(ShapeError, match="shapes differ"):
            op.infer(TensorType(good, (2,)), TensorType(good, (3,)), **attrs)
        with pytest.raises(DTypeError, match="dtypes differ"):
            op.infer(TensorType(good, (2,)), TensorType("bool", (2,)), **attrs)


@pytest.mark.parametrize("op", [op for op in SAMPLED if op.facts.identity is not None], ids=lambda op: op.name)
def test_identity_changes_nothing(op: Op):
    for arrays, attrs in cases(op):
        x = arrays[0]
        e = np.full_like(x, op.facts.identity(x.dtype))
        assert_same(op.reference(x, e, **attrs), x)


@pytest.mark.parametrize("op", [op for op in SAMPLED if "commutative" in op.traits], ids=lambda op: op.name)
def test_commutative_ops_commute(op: Op):
    for arrays, attrs in cases(op):
        assert_same(op.reference(*arrays[::-1], **attrs), op.reference(*arrays, **attrs))


def parts(op: Op):
    """The op in terms of others, if it says so."""
    return op.lowering.f if isinstance(op.lowering, Decompose) else op.facts.parts


@pytest.mark.parametrize("op", [op for op in SAMPLED if parts(op)], ids=lambda op: op.name)
def test_decomposition_equals_the_reference(op: Op):
    for arrays, attrs in cases(op):
        v, leaves = apply(op, arrays, attrs)
        form = parts(op)(v)
        forms = form if isinstance(form, list) else [form]
        assert [f.type for f in forms] == [r.type for r in results_of(v)] and v not in forms
        ulps = 1000 if {"factorization", "linear_solve"} & {t for o in postorder(forms) for t in o.op.traits} else 16
        pairs = zip(evaluate(forms, leaves, arrays), results(op.reference(*arrays, **attrs)), strict=True)
        for got, want in pairs:
            assert_same(got, want, ulps=ulps, message=f"{arrays} {attrs}")


@pytest.mark.parametrize(("op", "form"), ELEMENTS, ids=[op.name for op, _ in ELEMENTS])
def test_element_form_equals_the_reference(op: Op, form):
    for arrays, attrs in cases(op):
        v, leaves = apply(op, arrays, attrs)
        index = [fresh_input(TensorType("i64", ())) for _ in v.shape]

        def at(k, where, leaves=leaves):
            x = leaves[k]
            if "searches" in op.traits and k == 0:
                return load(x, *where)  # says which line is searched
            if x.ndim == 0 or 0 in x.shape:
                return x if x.ndim == 0 else scalar(0, x.dtype)
            return gather(x, *where, axes=tuple(range(x.ndim)))  # raises for a place that is out of bounds

        element = form(v, index, at)
        assert element.type is TensorType(v.dtype, ())
        want = op.reference(*arrays, **attrs)
        for place in np.ndindex(want.shape):
            numbers = [np.int64(i) for i in place]
            (got,) = evaluate([element], [*leaves, *index], [*arrays, *numbers])
            assert_same(got, want[place][()] if want.ndim else want, message=f"{attrs} at {place}")


# --- values that the samples' references cannot vouch for -------------------------------------------------------------


def test_integer_powers_never_raise():
    x, y = np.array([[-3, -1, -1, 0, 1, 2], [-1, -2, -3, -2, -5, -1]])
    assert lookup("pow").reference(x, y).tolist() == [0, 1, -1, 0, 1, 0]


def test_integer_division_by_zero_is_zero():
    x, zero = np.array([7, -7, 0]), np.zeros(3, int)
    for name in ("floordiv", "mod", "fmod"):
        assert lookup(name).reference(x, zero).tolist() == [0, 0, 0]


def test_remainders_have_the_sign_of_python_and_of_c():
    x, y = np.array([7, -7, 7, -7]), np.array([3, 3, -3, -3])
    assert [a % b for a, b in zip(x.tolist(), y.tolist(), strict=True)] == [1, 2, -2, -1]
    assert lookup("mod").reference(x, y).tolist() == [1, 2, -2, -1]
    assert lookup("fmod").reference(x, y).tolist() == [1, -1, 1, -1]


def test_shifts_past_the_width():
    x, n = np.array([1, -1, -8, 5], "i4"), np.array([32, 40, 99, -1], "i4")
    assert lookup("shl").reference(x, n).tolist() == [0, 0, 0, 0]
    assert lookup("shr").reference(x, n).tolist() == [0, -1, -1, 0]


def test_reductions_do_not_overflow():
    big = np.array([[1e200, -1e200], [3e-200, 4e-200], [-np.inf, -np.inf], [np.inf, 1], [0, 0]])
    norm = lookup("norm").reference(big, axes=(1,))
    np.testing.assert_allclose(norm, [np.sqrt(2) * 1e200, 5e-200, np.inf, np.inf, 0], rtol=1e-15)
    logsumexp = lookup("logsumexp").reference(np.array([[1000, 1000], [-1000, -np.inf], [-np.inf, -np.inf],
                                                        [np.inf, 1]]), axes=(1,))
    np.testing.assert_allclose(logsumexp, [1000 + np.log(2), -1000, -np.inf, np.inf], rtol=1e-15)
    assert lookup("norm").reference(np.array([3 + 4j, 12j]), axes=(0,)) == 13.0


def test_reductions_of_nothing():
    empty = np.ones((0, 2))
    for name, value in dict(sum=0, prod=1, norm=0, logsumexp=-np.inf).items():
        assert lookup(name).reference(empty, axes=(0,)).tolist() == [value, value]
    for name in ("max", "min", "argmax", "argmin"):
        with pytest.raises(ShapeError, match="no elements"):
            lookup(name).infer(TensorType("f64", (0, 2)), axes=(0,))
        with pytest.raises(ShapeError, match="no elements"):
            lookup(name).reference(empty, axes=(0,))


def test_extremes_of_nan_and_ties():
    x = np.array([[1, 3, 3], [np.nan, 5, np.nan], [-0.0, 0.0, -1]])
    assert lookup("argmax").reference(x, axes=(1,)).tolist() == [1, 0, 0]
    assert lookup("argmin").reference(x, axes=(1,)).tolist() == [0, 0, 2]
    np.testing.assert_array_equal(lookup("max").reference(x, axes=(1,)), [3, np.nan, 0])


def test_linear_recurrence_by_hand():
    a, b = np.array([5.0, 2.0, 0.0, 3.0]), np.array([1.0, 1.0, 4.0, 1.0])
    assert lookup("linrec").reference(a, b, axis=0, reverse=False).tolist() == [1, 3, 4, 13]
    assert lookup("linrec").reference(a, b, axis=0, reverse=True).tolist() == [46, 9, 4, 1]


def test_scatter_set_keeps_the_last():
    out = lookup("scatter").reference(np.zeros(3), np.array([1.0, 2.0, 3.0]), np.array([1, 1, 0]), axes=(0,),
                                      mode="set")
    assert out.tolist() == [3, 2, 0]


def test_scatter_accumulates_repeated_places():
    x, u, i = np.array([1.0, 5.0]), np.array([2.0, 3.0, 4.0]), np.array([0, 0, 1])
    for mode, want in dict(add=[6, 9], mul=[6, 20], max=[3, 5], min=[1, 4]).items():
        assert lookup("scatter").reference(x, u, i, axes=(0,), mode=mode).tolist() == want


@pytest.mark.parametrize("bad", [-1, 3])
def test_indices_out_of_bounds(bad):
    with pytest.raises(IndexingError, match=f"^index {bad} is out of bounds for axis 0 of size 3"):
        gather.reference(np.arange(3), np.array([0, bad]), axes=(0,))
    with pytest.raises(IndexingError, match=f"^index {bad} is out of bounds"):
        lookup("scatter").reference(np.arange(3), np.array([9]), np.array([bad]), axes=(0,), mode="set")


def test_windows_are_moved_to_fit():
    assert lookup("dynamic_slice").reference(np.arange(5), np.int64(4), size=(3,)).tolist() == [2, 3, 4]
    assert lookup("dynamic_update_slice").reference(np.arange(5), np.array([7, 8]), np.int64(-3)).tolist() == [7, 8, 2,
                                                                                                               3, 4]


def test_sort_is_stable_and_nan_is_last():
    x = np.array([2, np.nan, 1, 2, -np.inf, 1])
    assert lookup("argsort").reference(x, axis=0).tolist() == [4, 2, 5, 0, 3, 1]
    np.testing.assert_array_equal(lookup("sort").reference(x, axis=0), [-np.inf, 1, 1, 2, 2, np.nan])


@pytest.mark.parametrize(("op", "types", "attrs", "error"), [
    ("sum", ["f64[3]"], dict(axes=(1,)), ShapeError), ("sum", ["f64[3, 3]"], dict(axes=(1, 0)), ShapeError),
    ("any", ["f64[3]"], dict(axes=(0,)), DTypeError), ("argmax", ["f64[3, 3]"], dict(axes=(0, 1)), ShapeError),
    ("cumsum", ["f64[3]"], dict(axis=1, reverse=False), ShapeError), ("sort", ["c128[3]"], dict(axis=0), DTypeError),
    ("gather", ["f64[3]", "f64[2]"], dict(axes=(0,)), DTypeError),
    ("gather", ["f64[3]", "i64[2]"], dict(axes=(1,)), ShapeError),
    ("gather", ["f64[3, 3]", "i64[2]", "i32[2]"], dict(axes=(0, 1)), ShapeError),
    ("scatter", ["f64[3]", "f32[2]", "i64[2]"], dict(axes=(0,), mode="set"), DTypeError),
    ("scatter", ["f64[3]", "f64[3]", "i64[2]"], dict(axes=(0,), mode="set"), ShapeError),
    ("scatter", ["f64[3]", "f64[2]", "i64[2]"], dict(axes=(0,), mode="xor"), ShapeError),
    ("scatter", ["c64[3]", "c64[2]", "i64[2]"], dict(axes=(0,), mode="max"), DTypeError),
    ("dynamic_slice", ["f64[3]", "i64[]"], dict(size=(4,)), ShapeError),
    ("dynamic_slice", ["f64[3]", "i32[]"], dict(size=(2,)), DTypeError),
    ("dynamic_slice", ["f64[3]"], dict(size=(2,)), ShapeError),
    ("dynamic_update_slice", ["f64[3]", "f32[2]", "i64[]"], {}, DTypeError),
    ("where", ["i64[3]", "f64[3]", "f64[3]"], {}, DTypeError),
    ("where", ["bool[2]", "f64[3]", "f64[3]"], {}, ShapeError),
    ("complex", ["f16[3]", "f16[3]"], {}, DTypeError),
])
def test_mistakes_are_refused(op, types, attrs, error):
    parsed = []
    for t in types:
        dtype, _, shape = t.rstrip("]").partition("[")
        parsed.append(TensorType(dtype, [int(s) for s in shape.split(",") if s.strip()]))
    with pytest.raises(error, match="complex" if op == "complex" else op):
        lookup(op).infer(*parsed, **attrs)


def test_the_reference_page_is_current():
    from pathlib import Path

    from symc.ir.ops.__main__ import markdown

    page = Path(__file__).parents[2] / "docs" / "ops.md"
    assert page.read_text() == markdown(), "run: python -m symc.ir.ops > docs/ops.md"
