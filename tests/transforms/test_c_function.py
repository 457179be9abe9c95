"""Functions of C as ops: of numbers in kernels, of arrays as steps; from ctypes, cffi, and addresses."""

import ctypes
import ctypes.util
import importlib.util
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

import symc as sc
from symc.runtime.cache import object_cache
from symc.transforms.c_declarations import c_function_of

D, F, I = ctypes.c_double, ctypes.c_float, ctypes.c_int
LIBM = ctypes.CDLL(ctypes.util.find_library("m"))
A = np.linspace(0.1, 3.0, 37)


def libm(name: str, *takes, gives=D):
    f = getattr(ctypes.CDLL(ctypes.util.find_library("m")), name)
    f.argtypes, f.restype = takes, gives
    return f


def _forms(name: str, declaration: str):
    """One function in every form that is taken."""
    f = libm(name, D)
    yield "ctypes", f, {}
    yield "address", ctypes.cast(f, ctypes.c_void_p).value, {"signature": declaration}
    yield "callback", ctypes.CFUNCTYPE(D, D)(lambda x: float(getattr(np, name)(x))), {}
    if importlib.util.find_spec("cffi"):
        import cffi

        ffi = cffi.FFI()
        ffi.cdef(f"{declaration};")
        yield "cffi", getattr(ffi.dlopen(ctypes.util.find_library("m")), name), {}


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
def test_functions_of_numbers(backend):
    x = sc.vector("x")
    for form, f, more in _forms("cosh", "double cosh(double)"):
        cosh = sc.c_function(f, more.get("signature"), name=f"cosh_{form}", derivative=sc.sinh)
        call = sc.compile([cosh(x) * 2 + 1, sc.grad(sc.sum(cosh(x)), x)], [x], backend=backend)
        for _ in range(2):
            np.testing.assert_allclose(call(A)[0], np.cosh(A) * 2 + 1, rtol=1e-14)
            np.testing.assert_allclose(call(A)[1], np.sinh(A), rtol=1e-14)
        if backend == "llvm":
            assert [k.backend for k in call.kernels] == ["llvm"] and "python" not in cosh.op.traits


def test_types_of_c():
    x, n = sc.vector("x"), sc.input("n", "int32", (None,))
    ldexp = sc.c_function(libm("ldexp", D, I), name="t_ldexp")
    hypot = sc.c_function(libm("hypot", D, D), name="t_hypot")
    tanhf = sc.c_function(libm("tanhf", F, gives=F), name="t_tanhf")
    k = np.arange(-3, 34, dtype=np.int32)
    f = sc.compile([ldexp(x, n), hypot(x[:, None], 2), tanhf(x.astype("float32")), tanhf(n)], [x, n])
    got = f(A, k)
    np.testing.assert_array_equal(got[0], np.ldexp(A, k))
    np.testing.assert_allclose(got[1], np.hypot(A, 2)[:, None], rtol=1e-15)
    np.testing.assert_allclose(got[2], np.tanh(A.astype("float32")), rtol=1e-6)
    assert [r.dtype for r in got] == ["f8", "f8", "f4", "f4"] and got[3].shape == k.shape


def test_in_loops_batches_and_threads():
    x = sc.vector("x")
    c = sc.c_function(libm("exp2", D), name="t_exp2", derivative=lambda x: sc.exp2(x) * np.log(2))
    end, _ = sc.scan(lambda h, r: (c(h * 0.1) + r, None), sc.scalar("h"), x)
    h = 1.0
    for r in A:
        h = np.exp2(h * 0.1) + r
    np.testing.assert_allclose(sc.compile(end)(h=1.0, x=A), h)
    m = sc.matrix("m")
    np.testing.assert_allclose(sc.compile(sc.vmap(lambda r: c(r).sum())(m))(np.tile(A, (3, 1))), [np.exp2(A).sum()] * 3)
    big = np.tile(A, 30000)
    np.testing.assert_allclose(sc.compile(c(x), threads=2)(big), np.exp2(big))
    sc.check_op(c, [(A,)])


def test_no_address_is_kept_on_disk(tmp_path):
    """A second process finds the machine code and calls the function where it has it."""
    program = f"""
import ctypes, sys, numpy as np, symc as sc
from symc.runtime.compilers import llvm_compile
f = getattr(ctypes.CDLL({ctypes.util.find_library("m")!r}), sys.argv[1])
f.argtypes, f.restype = [ctypes.c_double], ctypes.c_double
x = sc.vector("x")
made = []
code = llvm_compile.kernel_code
llvm_compile.kernel_code = lambda *a: (made.append(1), code(*a))[1]
print(sc.compile(sc.c_function(f, name="on_disk")(x) + 1)(np.array([0.5]))[0], len(made))
"""
    env = {**os.environ, object_cache.FOLDER: str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}

    def run(name: str) -> list[float]:
        out = subprocess.run([sys.executable, "-c", program, name], env=env, capture_output=True, text=True)
        assert out.returncode == 0, out.stderr
        return [float(w) for w in out.stdout.split()]

    np.testing.assert_allclose(run("sinh"), [np.sinh(0.5) + 1, 1])
    np.testing.assert_allclose(run("sinh"), [np.sinh(0.5) + 1, 0])
    np.testing.assert_allclose(run("atan"), [np.arctan(0.5) + 1, 0])  # the same code calls what has the name now


C = """
#include <stddef.h>
int smooth(long n, const double *x, double *out) {
    if (n < 3) return 7;
    for (long i = 0; i < n; i++) out[i] = (x[i > 0 ? i - 1 : 0] + x[i] + x[i + 1 < n ? i + 1 : n - 1]) / 3;
    return 0;
}
void spread(const float *x, size_t n, double scale, float *low, int *where) {
    *low = x[0]; *where = 0;
    for (size_t i = 1; i < n; i++) if (x[i] * scale < *low * scale) { *low = x[i]; *where = (int)i; }
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The functions above, compiled where there is a compiler."""
    P = ctypes.POINTER
    smooth, spread = (ctypes.c_long, P(D), P(D)), (P(F), ctypes.c_size_t, D, P(F), P(I))
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler:
        folder = tmp_path_factory.mktemp("c")
        (folder / "own.c").write_text(C)
        subprocess.run([compiler, "-shared", "-fPIC", "-o", folder / "own.so", folder / "own.c"], check=True)
        found = ctypes.CDLL(str(folder / "own.so"))
        found.smooth.argtypes, found.smooth.restype = smooth, I
        found.spread.argtypes, found.spread.restype = spread, None
        return found.smooth, found.spread

    def smooth_(n, x, out):
        a = np.pad(np.ctypeslib.as_array(x, (n,)), 1, mode="edge")
        np.ctypeslib.as_array(out, (n,))[:] = (a[:-2] + a[1:-1] + a[2:]) / 3
        return 0 if n > 2 else 7

    def spread_(x, n, scale, low, where):
        a = np.ctypeslib.as_array(x, (n,)) * scale
        where[0] = int(a.argmin())
        low[0] = x[where[0]]

    return ctypes.CFUNCTYPE(I, *smooth)(smooth_), ctypes.CFUNCTYPE(None, *spread)(spread_)


def test_functions_of_arrays(library):
    smooth = sc.c_function(library[0], name="smooth", infer=lambda x: (x.dtype, x.shape),
                           arguments=["x.size", "x", "out"], vjp=lambda g, x: g)
    low = sc.c_function(library[1], name="smooth_spread", infer=lambda x, scale: [("float32", ()), ("int32", ())],
                        arguments=["x", "x.shape[0]", "scale", "out0", "out1"])
    x, m = sc.vector("x"), sc.matrix("m")
    want = (np.r_[A[0], A[:-1]] + A + np.r_[A[1:], A[-1]]) / 3
    f = sc.compile([smooth(x * 2) + 1, *low(x.astype("float32"), -1.0), sc.grad(sc.sum(smooth(x)), x)], [x])
    got = f(A)
    np.testing.assert_allclose(got[0], want * 2 + 1)
    assert got[1] == np.float32(3.0) and got[2] == 36 and got[1].dtype == np.float32 and got[2].dtype == np.int32
    np.testing.assert_allclose(got[3], 1)
    np.testing.assert_allclose(sc.compile(sc.vmap(smooth)(m.T))(np.stack([A, A], 1)), [want, want])
    with pytest.raises(sc.ExecutionError, match="smooth returned 7") as e:
        sc.compile(smooth(x))(np.ones(2))
    assert "test_c_function.py" in str(e.value)


def test_declarations():
    def read(text):
        c = c_function_of(4096, text, None)
        return c.name, c.takes, c.gives

    assert read("double f(double x, const float *a, long n)") == ("f", ("d", "*f", "l"), "d")
    assert read("void g(unsigned int k, double*, size_t);") == ("g", ("I", "*d", "L"), "")
    assert read("float(float)") == ("c_function", ("f",), "f")
    assert read("long long h(const void *p, long long)") == ("h", ("*?", "q"), "q")
    assert read("int none(void)") == ("none", (), "i")


X = sc.vector("x")
SHAPES = {"infer": lambda x: (x.dtype, x.shape)}


@pytest.mark.parametrize("make, said", [
    (lambda: sc.c_function(LIBM.log2), "does not say what it takes"),
    (lambda: sc.c_function(np.exp), "is no function of C"),
    (lambda: sc.c_function(3.5, "double f(double)"), "no address"),
    (lambda: sc.c_function(4096, "double f[3]"), "no declaration"),
    (lambda: sc.c_function(4096, "double f(struct s)"), "neither a number nor an array"),
    (lambda: sc.c_function(4096, "double f(double **)"), "neither a number nor an array"),
    (lambda: sc.c_function(4096, "double m1(double *)"), "takes arrays"),
    (lambda: sc.c_function(4096, "int m2(double)"), "must return double or float"),
    (lambda: sc.c_function(4096, "double m3(long)"), "takes no double or float"),
    (lambda: sc.c_function(4096, "double m4(double)")(X, X), "takes 1 operands, 2 were given"),
    (lambda: sc.c_function(4096, "double sin(double)"), "symc has an op called 'sin'"),
    (lambda: sc.c_function(libm("cbrt", D), name="m5")(sc.vector("z", "complex128")), "takes real numbers"),
    (lambda: sc.c_function(4096, "void m6(double *, double *)", **SHAPES), "needs infer= and arguments="),
    (lambda: sc.c_function(4096, "void m7(double *, double *)", arguments=["x"], **SHAPES), "takes 2 arguments"),
    (lambda: sc.c_function(4096, "void m8(double *, double *)", arguments=["x", "y"], **SHAPES), "its operands"),
    (lambda: sc.c_function(4096, "void m9(double *, double *)", arguments=["x", "x"], **SHAPES), "is a result"),
    (lambda: sc.c_function(4096, "void m10(double *, double)", arguments=["out", "x.size"], **SHAPES), "no integer"),
    (lambda: sc.compile(sc.c_function(4096, "void m11(float *, double *)", arguments=["x", "out"], **SHAPES)(X))(A),
     "points to float32"),
    (lambda: sc.compile(sc.c_function(4096, "void m12(double, double *)", arguments=["x", "out"], **SHAPES)(X))(A),
     "is a number of float64"),
])  # fmt: skip
def test_mistakes(make, said):
    with pytest.raises(sc.SymcError, match=said) as e:
        make()
    assert "test_c_function.py" in str(e.value)
