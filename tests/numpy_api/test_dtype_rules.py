"""Every public function against NumPy (or SciPy) in every dtype and in pairs of dtypes: dtypes and values."""

import inspect
import itertools
import zlib

import numpy as np
import pytest

import symc as sc
from symc.ir.types import DTYPES
from symc.numpy_api.ufuncs import UFUNCS
from symc.tensors.inputs import input as sc_input
from symc.tensors.public import API
from tests.numpy_api.dtype_cases import ALL, arrays_of, difference, forms, functions, given, problems
from tests.numpy_api.numpy_compare import check, evaluate

FUNCTIONS = {f.name: f for f in functions()}

#: Functions without an operand whose dtype matters, or whose results are no tensors.
NO_OPERANDS = {
    "results are no tensors": "__array_namespace_info__ can_cast common_type finfo iinfo iscomplexobj isdtype "
    "isrealobj ndim result_type size broadcast_shapes einsum_path isscalar issubdtype iterable min_scalar_type "
    "promote_types",
    "made of sizes, floats or indices": "mask_indices tril_indices triu_indices",
    "NumPy's change their argument, or take a function; see test_numpy_keywords": "apply_over_axes copyto "
    "fill_diagonal fromfunction place put put_along_axis putmask",
    "bytes only": "unpackbits",
    "made of text, bytes or objects": "frombuffer fromiter fromstring genfromtxt loadtxt",
    "three matrices, or one and a function; see test_matrix_functions": "linalg.solve_sylvester linalg.funm",
    "operands go together; see test_numpy_keywords": "linalg.solve_banded polyfit",
    "a dtype is the operand; see the test of dtype=": "astype",
    "indices and counts, integers by definition": "one_hot",
    "operands come from another function": "linalg.cho_factor linalg.cho_solve linalg.lu_solve",
}

#: What is not as in NumPy: functions, what is said of them, for which kinds of dtype (all if empty), and why.
EXCEPTIONS = [
    ("argmax argmin lexsort median nanargmax nanargmin nanmedian percentile quantile "
     "nanpercentile nanquantile topk kaiser histogram histogram2d histogram_bin_edges histogramdd unique unique_all "
     "unique_counts unique_inverse unique_values union1d intersect1d setdiff1d setxor1d arange tri", "refused", "c",
     "complex numbers have no order"),
    ("tri tile", "refused", "bf", "a size is an integer"),
    ("bartlett blackman hamming hanning kaiser diag_indices", "refused", "bfc", "a size is an integer"),
    ("arange", "shape", "u", "differences that are not negative"),
    ("bincount", "refused", "fc", "integers are counted"),
    ("intersect1d setxor1d", "shape", "", "of elements that are said to be distinct and are not"),
    ("intersect1d setxor1d", "dtype", "", "of elements that are said to be distinct and are not"),
    ("trim_zeros", "", "", "a list becomes a list in NumPy"),
    ("unique_values", "[", "", "in NumPy in any order"),
    ("special.digamma special.erf special.erfc special.erfcx special.log_softmax special.logsumexp special.ndtr "
     "special.softmax special.xlog1py special.xlogy", "refused", "c", "functions of real numbers"),
    ("nanvar nanstd", "refused", "c", "functions of real numbers"),
    ("linalg.lu linalg.lu_factor linalg.expm linalg.solve_triangular linalg.polar linalg.pinvh "
     "linalg.orthogonal_procrustes linalg.coshm linalg.sinhm linalg.tanhm linalg.cosm linalg.sinm linalg.tanm "
     "linalg.expm_frechet linalg.null_space linalg.orth linalg.schur linalg.ldl linalg.sqrtm linalg.logm linalg.signm "
     "linalg.fractional_matrix_power linalg.solve_continuous_lyapunov linalg.solve_discrete_lyapunov "
     "linalg.solveh_banded", "refused", "f",
     "libraries know no half precision, and numpy.linalg refuses it"),
    ("linalg.lu linalg.lu_factor linalg.solve_triangular linalg.polar linalg.pinvh linalg.null_space linalg.orth "
     "linalg.schur linalg.ldl linalg.sqrtm linalg.logm linalg.signm linalg.solve_continuous_lyapunov "
     "linalg.solve_discrete_lyapunov linalg.solveh_banded", "dtype float64, not float32", "",
     "as in numpy.linalg: integers in float64; SciPy takes float32 for small ones"),
    ("linalg.solve_triangular", "dtype complex128, not complex64", "c", "as in numpy.linalg: integers in float64"),
    ("linalg.lu_factor linalg.lstsq", "dtype int64, not int32", "", "pivots and ranks are integers as all others"),
    ("linalg.lu", "dtype complex", "c", "the permutation has the dtype of the matrix"),
    ("linalg.eig linalg.eigvals roots poly", "dtype complex", "", "a dtype does not depend on data"),
    ("real_if_close", "dtype", "c", "a dtype does not depend on data"),
    ("roll", "refused", "fc", "a shift is an integer"),
    ("ix", "refused", "b", "the size of the result depends on data"),
    ("dot inner append special.xlogy special.xlog1py special.polygamma", "dtype", "",
     "a Python number is weak wherever it is an operand"),
    ("empty empty_like", "", "", "zeros"),
    ("argpartition partition", "[", "", "sorted as a whole"),
    ("polydiv", "shape", "", "which coefficients in front are zeros is data"),
    ("linalg.companion linalg.orthogonal_procrustes", "[", "", "as in numpy.linalg: integers in float64, where SciPy's "
     "wrap"),
    ("linalg.coshm linalg.sinhm linalg.tanhm linalg.expm_frechet", "[", "", "integers in float64, where SciPy's wrap "
     "or are in single precision, as float32 is in its tanhm"),
    ("linalg.expm_frechet", "dtype complex128, not float64", "", "where SciPy drops imaginary parts of the direction"),
    ("linalg.solve_circulant", "dtype", "", "as in numpy.linalg, where SciPy transforms in double precision"),
    ("searchsorted", "[", "b", "the operand is not sorted"),
    ("gradient logspace", "[", "f", "rounding of float16 in the steps between"),
    ("special.polygamma", "dtype", "f", "floats keep their dtype"),
    ("linalg.sqrtm linalg.logm", "refused", "", "a dtype does not depend on data: what is complex of real is refused"),
    ("linalg.sqrtm linalg.logm", "dtype float64, not complex", "", "a dtype does not depend on data"),
    ("linalg.logm", "dtype complex64, not complex128", "c", "floats keep their dtype"),
    ("linalg.fractional_matrix_power", "dtype float64, not", "", "whole powers, too: nor does it depend on the power"),
    ("linalg.solve_continuous_lyapunov linalg.solve_discrete_lyapunov", "dtype complex128, not complex64", "",
     "as in numpy.linalg: integers in float64"),
    ("linalg.signm linalg.solve_continuous_lyapunov linalg.solve_discrete_lyapunov", "[", "",
     "integers in float64, where SciPy's are in single precision"),
]  # fmt: skip


def excused(name, dtypes, said):
    return any(
        name in names.split() and said.startswith(start) and (not kinds or any(d.kind in kinds for d in dtypes))
        for names, start, kinds, _ in EXCEPTIONS
    )


#: Pairs in which every function is tried.
TRICKY = [("bool", "bool"), ("i8", "i8"), ("u8", "u8"), ("u8", "bool"), ("u64", "i64"), ("f16", "i8"), ("f32", "i64")]


def some_pairs(name, step=32):
    """Pairs of dtypes: tricky ones, and others for every function, so that all together are tried often."""
    pairs = list(itertools.product(ALL, repeat=2))
    return [*pairs[zlib.crc32(name.encode()) % step :: step], *[(DTYPES[a], DTYPES[b]) for a, b in TRICKY]]


@pytest.mark.filterwarnings("ignore")  # of NumPy, in forms that are tried
@pytest.mark.parametrize("name", FUNCTIONS)
def test_dtypes_and_values(name):
    f = FUNCTIONS[name]
    found = forms(f)
    without = name in " ".join(NO_OPERANDS.values()).split()
    assert bool(found) != without, f"tests.numpy_api.dtype_cases has no form of calling {name} with arrays"
    for k, form in enumerate(found):  # of one array: the first form in all dtypes, another in half of them
        pairs = some_pairs(name) if len(form.shapes) == 2 else [(d,) for d in ALL[:: 1 + (k > 0)]]
        wrong = [(d, said) for d, said in problems(f, form, pairs) if not excused(name, d, said)]
        assert not wrong, f"{name}({form.name}) of {', '.join(map(str, wrong[0][0]))}: {wrong[0][1]}"


@pytest.mark.filterwarnings("ignore")
def test_native_code_agrees():
    """A sample, one dtype (or pair) a function, in one compiled function against the reference."""
    leaves, data, results = [], [], []
    for name, f in FUNCTIONS.items():
        if zlib.crc32(name.encode()) % 10:
            continue
        for form in forms(f)[-1:]:
            pairs = some_pairs(name) if len(form.shapes) == 2 else [(d,) for d in ALL]
            arrays = arrays_of(form, pairs[zlib.crc32(name.encode()) % len(pairs)])
            try:
                out, own = given(f, form, arrays)
            except (sc.SymcError, TypeError):
                continue
            leaves, data, results = leaves + own, data + arrays, results + out
    got = sc.compile(results, leaves)(*data)
    for g, w, t in zip(got, evaluate(results, leaves, data), results, strict=True):
        assert difference(g, w) is None, (t, difference(g, w))
    assert len(got) > 20


def test_exceptions_are_needed():
    """Names in the tables exist."""
    names = " ".join([*NO_OPERANDS.values(), *[e[0] for e in EXCEPTIONS]]).split()
    assert not {n for n in names if n not in FUNCTIONS}


# --- a user's name of a dtype means what NumPy means ------------------------------------------------------------------

SHORT = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
CALLS = [lambda f, a, d: f(a, dtype=d), lambda f, a, d: f((2, 2), dtype=d), lambda f, a, d: f(3, dtype=d),
         lambda f, a, d: f([a, a], dtype=d), lambda f, a, d: f(a, 2, dtype=d), lambda f, a, d: f((2,), 1, dtype=d),
         lambda f, a, d: f(1, 2, dtype=d), lambda f, a, d: f("i->i", a, dtype=d), lambda f, a, d: f(a, d)]  # fmt: skip
#: (Of isdtype the dtype is the operand, and no loop of frexp has two results of one dtype.)
WITH_DTYPE = [n for n, f in FUNCTIONS.items()
              if "dtype" in inspect.signature(f.call).parameters
              and n not in ("isdtype", "frexp", "fromfunction")]  # fmt: skip
GATES = {
    "input": lambda d: sc.input("x", d, ()), "scalar": lambda d: sc.scalar("x", dtype=d),
    "vector": lambda d: sc.vector("x", dtype=d), "Variable": lambda d: sc.Variable("x", dtype=d, shape=()),
    "Constant": lambda d: sc.Constant(1, d), "shared": lambda d: sc.shared(np.zeros(2, bool), dtype=d),
    "method": lambda d: sc.scalar("x").astype(d), "view of a list": lambda d: sc.asarray([1, 0], dtype=d),
    "custom op": lambda d: sc.op(infer=lambda x: (d, x.shape))(_typed)(sc.vector("x")),
}  # fmt: skip


@pytest.mark.parametrize("name", WITH_DTYPE)
def test_names_of_dtypes_in_functions(name):
    f = FUNCTIONS[name]
    a, tried = sc_input("a", "int64", (3,)), 0
    for call, short in itertools.product(CALLS, SHORT):
        try:
            out, whole = call(f.call, a, short), call(f.call, a, np.dtype(short))
        except (sc.SymcError, TypeError, ValueError):
            continue  # not a way to call it, or not for this dtype
        if isinstance(out, sc.Tensor | tuple):
            tried += 1
            pairs = [(out, whole)] if isinstance(out, sc.Tensor) else zip(out, whole, strict=True)
            assert all(x.dtype == y.dtype for x, y in pairs), (name, short)
    assert tried


def _typed(x):
    return x


@pytest.mark.parametrize("name", GATES)
def test_names_of_dtypes_at_gates(name):
    for short in SHORT:
        assert GATES[name](short).dtype == np.dtype(short), (name, short)
    assert GATES[name]("f32").dtype == np.float32  # a name of the IR that NumPy does not know


def test_names_of_dtypes_elsewhere():
    v = sc_input("v", "uint8", (300,))
    assert evaluate([np.sum(v, dtype="i8")], [v], [np.ones(300, "u1")])[0] == 300
    assert sc.random.bits(sc.random.key(0), (3,), dtype="u8").dtype == np.uint64
    assert sc.iinfo("i8").bits == 64 and sc.can_cast("i4", "i8") and not sc.can_cast("i8", "i4")
    assert sc.compile(sc.Variable("w", dtype="i8") + 1)(np.int64(300)) == 301
    with pytest.raises(sc.DTypeError, match="'float16' is 'f2'"):
        sc.input("x", "f16")
    with pytest.raises(sc.DTypeError, match="not a dtype"):
        sc.zeros(3, dtype=v)
    assert str(sc.parse("func @f(%x: i8[]) -> (i8[]) {\n  return %x\n}")).startswith("func @f(%x: i8[])")


# --- elementwise functions at the edges of dtypes ---------------------------------------------------------------------


def edges(d):
    """The numbers of a dtype at which conventions differ."""
    if d.kind == "b":
        return np.array([False, True])
    if d.kind in "iu":
        i = np.iinfo(d)
        low = [n for n in (i.min, i.min + 1, -7, -1) if n >= i.min]
        return np.unique(np.array([*low, 0, 1, 2, 5, 8, 31, 33, 64, 100, i.max - 1, i.max], object)).astype(d)
    if d.kind == "c":
        unusual = [complex(np.nan, 1), complex(np.inf, 0), complex(1, -np.inf)]
        return np.array([0, 1, -1, 1j, 1 + 2j, -3 - 0.5j, *unusual], d)
    f = np.finfo(d)
    return np.array([np.nan, -np.inf, f.min, -2.5, -1, -f.tiny, -0.0, 0.0, 0.5, 1, 1.5, 3, 7, f.max, np.inf], d)


#: Where NumPy itself has no convention: C leaves 1 / 0 open (int32 and int64 differ from int8), float16 has another
#: sign of the spacing than float32; and of 1 / 0j one part is nan, which one is left open.
NO_CONVENTION = {np.reciprocal: "ilFD", np.spacing: "be"}


@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda u: u.__name__)
def test_edges(ufunc):
    pairs = list(itertools.product(ALL, repeat=ufunc.nin))
    if ufunc.nin == 2:
        pairs = {*pairs[zlib.crc32(ufunc.__name__.encode()) % 9 :: 9], *zip(ALL, ALL, strict=True)}
    leaves, data, results, wanted = [], [], [], []
    with np.errstate(all="ignore"):
        for dtypes in sorted(pairs, key=str):
            if any(d.char in NO_CONVENTION.get(ufunc, "") for d in dtypes):
                continue
            arrays = [np.ravel(a).copy() for a in np.meshgrid(*map(edges, dtypes), indexing="ij")]
            own = [sc_input(f"x{i}", a.dtype, a.shape) for i, a in enumerate(arrays)]
            try:
                want = ufunc(*arrays)
            except TypeError:
                with pytest.raises(sc.DTypeError):
                    API[ufunc.__name__](*own)
                continue
            except ValueError:  # a negative power of an integer: NumPy looks at the data
                continue
            got = API[ufunc.__name__](*own)
            results += got if isinstance(got, tuple) else [got]
            wanted += [(dtypes, w) for w in (want if isinstance(want, tuple) else [want])]
            leaves += own
            data += arrays
        for got, (dtypes, want) in zip(evaluate(results, leaves, data), wanted, strict=True):
            said = difference(got, want)
            assert not said, f"{ufunc.__name__} of {dtypes}: {said}"


# --- Python numbers beside arrays -------------------------------------------------------------------------------------

#: Places where a Python number goes into an array of a dtype.
PLACES = {
    "asarray": lambda x, k: sc.asarray(k, x.dtype), "list": lambda x, k: sc.asarray([1, k], x.dtype),
    "full": lambda x, k: sc.full((2,), k, x.dtype), "full_like": lambda x, k: sc.full_like(x, k),
    "pad": lambda x, k: sc.pad(x, 1, constant_values=k), "insert": lambda x, k: sc.insert(x, 1, k),
    "pads": lambda x, k: sc.pad(x, 1, constant_values=(0, k)), "at": lambda x, k: x.at[0].set(k),
    "where": lambda x, k: sc.where(x > 0, x, k), "add": lambda x, k: x + k, "maximum": lambda x, k: sc.maximum(x, k),
    "max": lambda x, k: sc.max(x, initial=k),
    "stack": lambda x, k: sc.stack([x[0], k]),
}  # fmt: skip


@pytest.mark.parametrize("name", PLACES)
def test_integers_that_do_not_fit(name):
    for d in ALL:
        x = sc_input("x", d, (3,))
        if d.kind in "iu":
            info = np.iinfo(d)
            for k in (int(info.min), int(info.max), 7):
                assert PLACES[name](x, k).dtype == d, (d, k)
            for k in (int(info.min) - 1, 2 * int(info.max), -300, 2**63):
                if info.min <= k <= info.max:
                    continue
                with pytest.raises(sc.DTypeError, match="fit"):
                    PLACES[name](x, int(k))
        elif d.kind in "fc":
            assert PLACES[name](x, 2**63).dtype == d


def test_conventions_of_integers():
    """Of dtype and value, by NumPy itself."""
    for d in ALL:
        a = np.array([1, 0, 1], d) if d.kind == "b" else np.array([3, 1, 100], d)
        for fn in (lambda x: x**2, lambda x: np.sum(x, initial=2), lambda x: np.max(x, initial=1), np.cumsum, np.prod,
                   np.mean, np.std):  # fmt: skip
            check(fn, a)
        for low, high in [(0, None), (-(2**40), 2**40)] if d.kind in "iu" else []:
            check(lambda x, low=low, high=high: np.clip(x, low, high), a)
    check(lambda x: np.clip(x, 1, np.array([2, 200], "i2")), np.array([0, 1], "?"))
    check(lambda x: np.isclose(x, x[::-1], atol=3), np.array([1, 3, 250], "u1"))
    check(lambda x, y: x < y, np.array([2**64 - 1, 0], "u8"), np.array([-1, 5]))
    check(lambda x, y: x + y, np.array([2**64 - 1, 0], "u8"), np.array([-1, 5]))
    image = np.full((512, 512), 255, "u1")
    check(np.linalg.norm, image)
    check(lambda x: np.vdot(x, x), np.ones(300, bool))
    check(lambda x: np.correlate(x, x), np.ones(300, bool))
