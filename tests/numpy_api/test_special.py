"""The functions of ``sc.special`` against SciPy's: names, values at edges in every dtype and backend, gradients."""

import os
import subprocess
import sys
from pathlib import Path

import mpmath
import numpy as np
import pytest
import scipy.special

import symc as sc
from symc.ir.op import Op, all_ops, lookup
from symc.ir.ops.complex_functions import NAMES, OF_ORDER
from symc.ir.ops.special import INTEGER, SEVERAL, TABLE
from symc.numpy_api.special_page import NOT_HERE, page
from symc.tensors.tensor import Tensor
from symc.testing import emulated_cuda
from tests.numpy_api.numpy_compare import evaluate

UFUNCS = [n for n in scipy.special.__all__ if isinstance(getattr(scipy.special, n), np.ufunc)]
ROUTINES = [op for op in all_ops() if op.facts.routine is not None]
GROUPS = [tuple(ROUTINES[k:k + 12]) for k in range(0, len(ROUTINES), 12)]
X = np.linspace(0.1, 3, 7)


def test_every_ufunc_is_here_or_has_a_reason():
    missing = [n for n in UFUNCS if n not in sc.special.__all__]
    assert sorted(missing) == sorted(n for names in NOT_HERE.values() for n in names)
    assert len(missing) < 0.1 * len(UFUNCS)
    assert all(callable(getattr(sc.special, n)) for n in sc.special.__all__)


def test_the_page_is_current():
    text = (Path(__file__).parents[2] / "docs" / "special.md").read_text()
    assert text == page(), "run: python -m symc.numpy_api.special_page > docs/special.md"


@pytest.mark.parametrize("name", [*TABLE, *SEVERAL])
def test_dtypes(name):
    """The common dtype of the operands, integers in float64."""
    count = len(TABLE[name] if name in TABLE else SEVERAL[name][1])
    for given, want in {("float16",): "float16", ("float32",): "float32", ("int32",): "float64",
                        ("bool", "float32"): "float32", ("int64", "float32"): "float64"}.items():
        first = "int8" if name in INTEGER else given[0]
        operands = [first, *[given[-1]] * (count - 1)]
        if name in INTEGER and given[0] != "float16":
            continue
        out = getattr(sc.special, name)(*[sc.input(f"x{k}", d, shape=(2,)) for k, d in enumerate(operands)])
        if len(given) <= count:
            assert {str(o.dtype) for o in (out if isinstance(out, tuple) else (out,))} == {want}


def compare(group: tuple[Op, ...], dtype: str, backend: str | None) -> None:
    """Compile several at once, and compare them with SciPy on their samples."""
    leaves, arrays, outs, wants = [], [], [], []
    for op in group:
        given = next(list(a) for a, _ in op.samples() if a[0].dtype == dtype and a[0].ndim == 1)
        own = [sc.input(f"{op.name}_{k}", dtype, shape=a.shape) for k, a in enumerate(given)]
        leaves, arrays = [*leaves, *own], [*arrays, *given]
        outs.append(Tensor(op(*[x.value for x in own])))
        wants.append(op.reference(*given))
    f = sc.compile(outs, leaves, **({} if backend is None else {"backend": backend}))
    for op, got, want in zip(group, f(*arrays), wants, strict=True):
        assert got.dtype == dtype
        np.testing.assert_allclose(got.astype(float), want.astype(float), rtol=8 * np.finfo(dtype).eps,
                                   err_msg=op.name)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize("group", GROUPS, ids=lambda g: g[0].name)
def test_kernels_give_what_scipy_gives(group, dtype):
    compare(group, dtype, None)


def test_numba_gives_what_scipy_gives():
    """One for each way of calling."""
    ways = {(op.facts.routine.takes, op.facts.routine.gives, op.facts.routine.which): op for op in ROUTINES}
    compare(tuple(ways.values()), "float64", "numba")


def test_numpy_gives_what_scipy_gives():
    x = sc.input("x", "float64", shape=("n",))
    f = sc.compile([sc.special.gammainc(2, x), sc.special.sici(x)[1]], [x], backend="numpy")
    for got, want in zip(f(X), [scipy.special.gammainc(2, X), scipy.special.sici(X)[1]], strict=True):
        np.testing.assert_array_equal(got, want)


#: How SciPy is called, for what is no ufunc of floats.
CALLS = {
    "comb": [(9.5, X)], "perm": [(9.5, X)], "multigammaln": [(X + 3, 3)], "zeta": [(X + 1,), (X + 1, 2.5), (-X,)],
    "spherical_jn": [(2, X), (2, X, True), (0, X, True)], "spherical_yn": [(2, X, True)],
    "spherical_in": [(2, X, True)], "spherical_kn": [(2, X, True)], "eval_legendre": [(60, X / 4), (2.5, X / 4)],
    "eval_laguerre": [(60, X)], "eval_hermite": [(5, X)],
    "kelvin": [(X,)], "kn": [(2, X)], "yn": [(2, X)], "jn": [(2, X)],
    "rel_entr": [(X, 1.5), (0.0, X), (X, -1.0)], "kl_div": [(X, 1.5), (0.0, X), (X, 0.0)],
    "huber": [(1.5, X), (-1.0, X)], "pseudo_huber": [(1.5, X), (0.0, X), (-1.0, X)], "radian": [(X, 3.0, 4.0)],
    "loggamma": [(X,), (-X,)], "round": [(X,)], "sici": [(X,)], "airy": [(X,)], "ellipj": [(X, 0.3)],
    "ndtri": [(np.array([0.0, 1e-300, 1e-20, 0.3, 1.0, 2.0]),)], "log_ndtr": [(np.array([-1e9, -30.0, -1.0, 3.0]),)],
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name):
    for args in CALLS[name]:
        k = next(k for k, a in enumerate(args) if isinstance(a, np.ndarray))
        x = sc.input("x", "float64", shape=args[k].shape)
        out = getattr(sc.special, name)(*args[:k], x, *args[k + 1:])
        want = getattr(scipy.special, name)(*args)
        outs, wants = (out, want) if isinstance(out, tuple) else ((out,), (want,))
        for got, w in zip(evaluate(list(outs), [x], [args[k]]), wants, strict=True):
            np.testing.assert_allclose(got, w, rtol=1e-12, atol=1e-15)


def test_functions_of_scipy_work_on_symbols():
    x = sc.input("x", "float64", shape=(7,))
    calls = {"gammainc": (2.0, x), "kv": (1.5, x), "zeta": (x + 1, 2.0), "betainc": (1.0, 2.0, x / 4)}
    for name, args in calls.items():
        (got,) = evaluate([getattr(scipy.special, name)(*args)], [x], [X])
        numbers = [evaluate([a], [x], [X])[0] if isinstance(a, Tensor) else a for a in args]
        np.testing.assert_allclose(got, getattr(scipy.special, name)(*numbers), rtol=1e-14)
    with pytest.raises(sc.SymcError, match=r"scipy\.special\.modfresnelp is not available"):
        scipy.special.modfresnelp(x)


def test_they_are_part_of_a_kernel():
    a, x = sc.scalar("a"), sc.input("x", "float64", shape=("n",))
    loss = sc.sum(sc.exp(-sc.special.gammainc(a, x)) * sc.special.jv(1, x) + sc.special.fresnel(x)[1] * x)
    f = sc.compile(loss, [a, x])
    assert len(f.kernels) == 1
    want = np.sum(np.exp(-scipy.special.gammainc(2.0, X)) * scipy.special.jv(1, X) + scipy.special.fresnel(X)[1] * X)
    assert f(2.0, X) == pytest.approx(want, rel=1e-14)


@pytest.mark.parametrize(("name", "args", "k"), [
    ("gammainc", (2.5, 1.7), 0), ("gammainc", (40.0, 33.0), 0), ("gammaincc", (0.3, 4.0), 0),
    ("gammaincinv", (2.5, 0.3), 0), ("chdtr", (3.0, 2.0), 0), ("gdtr", (1.5, 2.0, 1.1), 1),
])
def test_derivatives_by_shape(name, args, k):
    """Against mpmath, in both directions."""
    def regularized(a, x):
        return mpmath.gammainc(a, 0, x, regularized=True)

    exact = {
        "gammainc": regularized, "gammaincc": lambda a, x: 1 - regularized(a, x),
        "gammaincinv": lambda a, y: mpmath.findroot(lambda x: regularized(a, x) - y, scipy.special.gammaincinv(*args)),
        "chdtr": lambda v, x: regularized(v / 2, x / 2), "gdtr": lambda a, b, x: regularized(b, a * x),
    }[name]
    with mpmath.workdps(40):
        given = [mpmath.mpf(a) for a in args]
        want = float(mpmath.diff(lambda t: exact(*given[:k], t, *given[k + 1:]), given[k]))
    leaves = [sc.scalar(f"x{i}") for i in range(len(args))]
    out = getattr(sc.special, name)(*leaves)
    back = sc.grad(out, leaves[k])
    ahead = sc.jvp(out, leaves[k], 1.0)
    got = evaluate([back, ahead[1] if isinstance(ahead, tuple) else ahead], leaves, list(map(np.float64, args)))
    np.testing.assert_allclose(got, want, rtol=1e-10)


def test_what_is_not_known_is_said():
    x, n = sc.input("x", "float64", shape=(3,)), sc.input("n", "int64", shape=(3,))
    with pytest.raises(sc.GradientError, match="derivative of jv with respect to v is not known"):
        sc.grad(sc.sum(sc.special.jv(x, x)), x)
    with pytest.raises(sc.DTypeError, match="eval_hermite: n must be an integer"):
        sc.special.eval_hermite(x, x)
    with pytest.raises(TypeError, match="jv takes v, x: 2 operands, not 1"):
        sc.special.jv(x)
    sc.grad(sc.sum(sc.special.jv(n, x)), x)  # an order that is data has no derivative


def test_a_device_has_some_of_them():
    with emulated_cuda():
        x = sc.input("x", "float64", shape=("n",))
        for name in ("j0", "gamma", "log_ndtr"):
            f = sc.compile(getattr(sc.special, name)(x), [x], device="cuda")
            np.testing.assert_allclose(f(X).numpy(), getattr(scipy.special, name)(X), rtol=1e-13)
        with pytest.raises(sc.DeviceError, match=r"no kernel for the function scipy\.special\.gammainc"):
            sc.compile(sc.special.gammainc(2.0, x), [x], device="cuda")


WARM = """
import sys, numpy as np, symc as sc
x = sc.input("x", "float64", shape=("n",))
f = sc.compile(sc.special.gammainc(2.0, x) + sc.special.sici(x)[1], [x])
print(float(f(np.full(3, 1.5))[0]), "symc.runtime.compilers.llvm_function" in sys.modules)
"""


def test_a_warm_process_finds_them(tmp_path):
    env = {**os.environ, "SYMC_CACHE_DIR": str(tmp_path / "cache")}
    runs = [subprocess.run([sys.executable, "-c", WARM], env=env, capture_output=True, text=True, check=True).stdout
            for _ in range(2)]
    want = scipy.special.gammainc(2.0, 1.5) + scipy.special.sici(1.5)[1]
    assert all(float(r.split()[0]) == pytest.approx(want, rel=1e-14) for r in runs)
    assert [r.split()[1] for r in runs] == ["True", "False"], "the second compiles nothing"


def test_records_say_what_kernels_call():
    assert lookup("bdtr").facts.routine.key == "dld00_bdtr" and lookup("sici_1").facts.routine.key == "d21_sici"


@pytest.mark.parametrize("name", NAMES)
def test_functions_of_complex_numbers(name):
    rng = np.random.default_rng(0)
    a, order = rng.normal(size=4) + 1j * rng.normal(size=4), np.array([0.0, 1, 1.5, -0.5])
    z, v = sc.input("z", "complex128", ("n",)), sc.input("v", "float64", ("n",))
    ours, theirs = getattr(sc.special, name), getattr(scipy.special, name)
    first = (z, 1) if name == "lambertw" else (v, z) if name in OF_ORDER else (z,)
    want = theirs(a, 1) if name == "lambertw" else theirs(order, a) if name in OF_ORDER else theirs(a)
    got = sc.compile(ours(*first), [z, v], mode="reference")(a, order)
    np.testing.assert_allclose(got, want, rtol=1e-13)
    assert sc.special.lambertw(v).dtype == sc.special.wofz(v).dtype == np.complex128


def test_orders_have_no_derivative():
    v = sc.vector("v")
    with pytest.raises(sc.GradientError, match="order"):
        sc.grad(sc.sum(sc.abs(sc.special.hankel1(v, 2 + 0j))), v)
    with pytest.raises(sc.DTypeError, match="order must be real"):
        sc.special.jv(1j * v, 1j * v)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_i0_to_the_last_places(dtype):
    """Two polynomials by Horner's scheme, an operation for each coefficient."""
    x = sc.input("x", dtype, ("n",))
    f = sc.compile(sc.i0(x), [x])
    (kernel,) = f.kernels
    assert kernel.source.count("+") < 70
    a = np.concatenate([np.linspace(-20, 20, 401), [0, 8, np.nextafter(8, 9), 1e-300, 80]]).astype(dtype)
    want = [mpmath.besseli(0, mpmath.mpf(float(v))) for v in a]
    units = [abs(float(g) - w) / float(np.spacing(np.dtype(dtype).type(w))) for g, w in zip(f(a), want, strict=True)]
    assert max(units) < 4
