"""Functions as C: they compile without a warning, give what symc gives at any sizes, and name what C cannot compute."""

from __future__ import annotations

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

import symc as sc
from benchmarks.exported import PROGRAMS
from symc.errors import ExportError
from symc.export.interface import interface, interface_of
from symc.export.source import source_of
from symc.ir.function import Input, function
from symc.ir.ops.kernel import results_of
from symc.opt.engine.passes import optimize
from symc.tensors.pytree import flatten
from tests.export.running import STRICT, Built, built, linked
from tests.ir.op_cases import ON_DEVICES, apply, cases, evaluate, observed

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="C is compiled by gcc")
RNG = np.random.default_rng(0)
#: Lengths of calls: none, one, odd, longer than any block.
LENGTHS = (1, 2, 7, 33)


def states_of(f) -> list[np.ndarray]:
    return [np.array(w.get_value()) for w in f.shared.values()]


def check_call(f, program: Built, arrays, tol: float = 1e-9, own: bool = True) -> None:
    """A call of both from the same states: results and new states."""
    states = states_of(f)
    said, got = program(arrays, states, own)
    assert said == ""
    want = [*flatten(f(*arrays))[0], *states_of(f)]
    for x, y in zip([*got, *states], want, strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        largest = np.abs(y[np.isfinite(y)]).max(initial=0.0)
        np.testing.assert_allclose(x, y, rtol=tol, atol=tol * largest)


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Every program of the benchmark with its library."""
    made = {name: make() for name, (make, _) in PROGRAMS.items()}
    return {name: (f, built(f, tmp_path_factory.mktemp(name))) for name, f in made.items()}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, programs):
    f, program = programs[name]
    for n in LENGTHS:
        check_call(f, program, PROGRAMS[name][1](n, RNG), 2e-4 if name in ("mlp_step", "attention") else 1e-8)
    check_call(f, program, PROGRAMS[name][1](3, RNG), 2e-4, own=False)


def test_lengths_of_nothing(programs):
    for name in ("lstm", "kalman", "log_density"):
        check_call(*programs[name], PROGRAMS[name][1](0, RNG))


@pytest.mark.parametrize("group", range(2))
def test_ops(group, tmp_path):
    """The first sample of every op is computed, or refused by name."""
    roots, leaves, arrays, refused = [], [], [], set()
    for op in ON_DEVICES[group::2]:
        given, attrs = cases(op)[0]
        v, own = apply(op, given, attrs)
        try:
            source_of(interface(_optimized(f"one_{op.name}", own, observed(v)), [str(k) for k in range(9)][:len(
                observed(v))]))
        except ExportError as e:
            assert op.name in str(e) or any(n in str(e) for n in ("sort", "rfft", "irfft", "eig", "svd", "qr")), str(e)
            refused.add(op.name)
            continue
        roots, leaves, arrays = [*roots, *observed(v)], [*leaves, *own], [*arrays, *given]
    final = _optimized("ops", leaves, roots)
    source = source_of(interface(final, [str(k) for k in range(len(roots))]))
    program = Built(source, linked([source], tmp_path))
    said, got = program(arrays)
    assert said == ""
    for x, want, root in zip(got, evaluate(roots, leaves, arrays), roots, strict=True):
        near = {"e": 2e-2, "f": 2e-4, "F": 2e-4}.get(want.dtype.char, 1e-9)
        np.testing.assert_allclose(x, want, rtol=near, atol=near, err_msg=str(root))
    assert len(roots) > 4 * len(refused)


def _optimized(name, leaves, roots):
    return optimize(function(name, [(x, Input(f"x{k}", x.type)) for k, x in enumerate(leaves)],
                             [r for root in roots for r in results_of(root)])).function


def test_states_change_after_success_alone(tmp_path):
    """States that take each other's values, results that are old states, a step that stops."""
    a, b = sc.shared(np.ones(3), "a"), sc.shared(np.arange(3.0), "b")
    f = sc.compile([a, b], [], updates={a: b, b: a}, name="swap")
    check_call(f, built(f, tmp_path), [])
    m = sc.input("m", "float64", ("n", "n"))
    g = sc.compile([a * 2], [m], updates={a: a + 1, b: b + sc.sum(sc.linalg.cholesky(m))}, name="stops")
    program, states = built(g, tmp_path), states_of(g)
    said, _ = program([-np.eye(4)], states)
    assert said.startswith("cholesky: the matrix is not positive definite (test_c.py:")
    for x, y in zip(states, states_of(g), strict=True):
        np.testing.assert_array_equal(x, y)
    check_call(g, program, [np.eye(4)])


def test_products_that_are_rounded(tmp_path):
    """A square less the largest one is 0 there, also by compilers that contract; the least integer is a number."""
    x, k = sc.input("x", "float64", ("n",)), sc.input("k", "int64", (4,))
    f = sc.compile([x * x - sc.max(x * x), sc.max(k), sc.min(k)], [x, k], name="squares")
    program = built(f, tmp_path, ("-O3", "-march=native"))
    for own in (np.full(9, 0.1), 0.1 * np.arange(40)):
        for a, b in zip(program([own, np.full(4, -(2**63))])[1], f(own, np.full(4, -(2**63))), strict=True):
            np.testing.assert_array_equal(a, b)


def test_what_a_call_is_refused_for(tmp_path):
    x, at = sc.input("x", "float64", ("n",)), sc.input("at", "int64", ("k",))
    checked = sc.debug.assert_(x, x > 0, "x is positive")
    f = sc.compile([x[at], sc.max(x), x[-2], sc.log(checked)], [x, at], name="checks")
    program = built(f, tmp_path)
    check_call(f, program, [np.arange(1.0, 5), np.array([1, -2])])
    for x_, at_, why in (([1.0, 2], [2], "out of bounds"), ([], [], "must be at least"),
                         ([1.0, -1], [0], "x is positive")):
        said, _ = program([np.array(x_), np.array(at_, np.int64)])
        assert why in said and "test_c.py" in said
    assert program.message(99) == b"no such message"
    assert program.entry(None, None, None, None, None, None, -1, 0, None) == 1


def test_sizes_whose_products_have_no_number(tmp_path):
    """Bytes of arrays and counts of loops that 64 bits cannot say are an error before anything runs."""
    x, y = sc.input("x", "float64", ("n",)), sc.input("y", "float64", ("m",))
    every = x[:, None] * y
    f = sc.compile(sc.sum(sc.sin(every)) + sc.sum(sc.reshape(every, (-1,))[::2]), [x, y], name="wide")
    program = built(f, tmp_path)
    check_call(f, program, [RNG.normal(size=3), RNG.normal(size=4)])
    for n, m in ((1 << 32, 1 << 31), (1 << 41, 0), (-1, 1)):
        sizes = [ctypes.c_int64(k) for k in (n, m)]
        assert program.workspace(*sizes) == (1 << 64) - 1
        assert program.entry(None, None, None, *sizes, None) == 1


def test_denormal_numbers(tmp_path):
    """As ``denormals=`` says, and the caller's own are kept after a call."""
    x = sc.vector("x")
    tiny = np.full(3, 1e-310)
    for how, want in (("keep", tiny), ("flush", tiny * 0)):
        f = sc.compile(x * 1.0000001, [x], denormals=how, name=how)
        np.testing.assert_allclose(built(f, tmp_path)([tiny])[1][0], want, rtol=1e-6)
        np.testing.assert_array_equal(f(tiny) > 0, want > 0)
        assert (tiny * 2 > tiny).all()


def test_branches_and_loops(tmp_path):
    n, m = sc.input("n", "int64", ()), sc.input("m", "float64", ("k", "k"))
    _, steps = sc.while_loop(lambda c: c[0] != 1,
                             lambda c: (sc.where(c[0] % 2 == 0, c[0] // 2, 3 * c[0] + 1), c[1] + 1), (n, 0))
    grown = sc.while_loop(lambda a: sc.sum(a) < 100, lambda a: a @ a + 1, m, max_steps=3)
    chosen = sc.switch(n, [lambda a: a @ a, sc.linalg.inv, lambda a: a.T + 1], m)
    fine = sc.cond(sc.all(m > 0), lambda a: sc.linalg.det(a), lambda a: sc.sum(a), m)
    f = sc.compile((steps, grown, chosen, fine), [n, m], name="ways")
    program = built(f, tmp_path)
    for k in (1, 2, 5):
        for k2 in (1, 3, 8):
            check_call(f, program, [np.asarray(k), np.eye(k2) * 2 + RNG.random((k2, k2)) - 0.1 * k])


def test_products_by_cblas(tmp_path):
    """The same numbers as by loops, through a CBLAS of our own."""
    header = tmp_path / "cblas.h"
    header.write_text("#include <stdlib.h>\nenum { CblasRowMajor = 101, CblasNoTrans = 111, CblasTrans = 112 };\n"
                      "extern int calls;\nvoid cblas_dgemm(int, int, int, int, int, int, double, const double *, int, "
                      "const double *, int, double, double *, int);\n")
    (tmp_path / "cblas.c").write_text("""#include "cblas.h"
int calls;
void cblas_dgemm(int order, int ta, int tb, int m, int n, int k, double alpha, const double *a, int la, const double *b,
                 int lb, double beta, double *c, int lc) {
  (void)order, calls++;
  for (int i = 0; i < m; i++) for (int j = 0; j < n; j++) {
    double sum = 0;
    for (int p = 0; p < k; p++)
      sum += (ta == 112 ? a[p * la + i] : a[i * la + p]) * (tb == 112 ? b[j * lb + p] : b[p * lb + j]);
    c[i * lc + j] = alpha * sum + beta * c[i * lc + j];
  }
}
""")
    a, b, c = [sc.input(x, "float64", s) for x, s in (("a", ("n", "k")), ("b", ("k", "m")), ("c", ("n", "m")))]
    f = sc.compile([a @ b, 2.0 * (a.T @ c) - 0.5 * b, (c @ b.T) * 3], [a, b, c], name="products")
    program = built(f, tmp_path, ("-O1", "-DPRODUCTS_USE_CBLAS", f"-I{tmp_path}"), [str(tmp_path / "cblas.c")])
    for n, k, m in ((9, 10, 11), (1, 20, 40), (40, 20, 1), (3, 0, 2), (0, 3, 4)):
        check_call(f, program, [RNG.normal(size=s) for s in ((n, k), (k, m), (n, m))])
    assert ctypes.c_int.in_dll(program.library, "calls").value >= 9


def test_constants_names_and_dtypes(tmp_path):
    """A constant of many numbers is a file of its own; names that C has are changed; every dtype passes through."""
    table = RNG.normal(size=(40, 10))
    named = [sc.input(n, "float64", ("int",)) for n in ("double", "scale_d", "x y", "k0_add")]
    f = sc.compile([named[0] + named[1] * named[2] - named[3], sc.asarray(table) * 2 + named[0][0],
                    sc.asarray([np.nan, -np.inf, -0.0]) + named[1][0]], named, name="exp")
    program = built(f, tmp_path)
    assert "exp__constants.c" in program.source.files and program.interface.name == "exp_"
    check_call(f, program, [RNG.normal(size=5) for _ in named])
    types = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32",
             "complex64", "complex128"]
    xs = [sc.input(f"x{t}", t, ("n",)) for t in types]
    g = sc.compile([x[::-1] + x for x in xs], xs, name="dtypes")
    check_call(g, built(g, tmp_path), [np.array([1, 0, 1]).astype(t) for t in types], 1e-3)


WORDS = ("EOF", "DBL_MAX", "UINT64_C", "int64_t", "isnan", "bits64", "exp64_f64", "failed", "read", "size_n", "α")


def test_words_of_c_and_of_an_export_are_no_names(tmp_path):
    """Of functions, arguments, states and sizes: all of them in one library."""
    made = []
    for word in WORDS:
        x, i = sc.input(word, "float64", (word, "m")), sc.input("i", "int64", ("k",))
        w = sc.shared(np.ones(3), word)
        made.append(sc.compile([sc.exp(x)[i], sc.sort(x, axis=0), x.T @ x], [x, i], updates={w: w * 2}, name=word))
    sources = [source_of(interface_of(f)) for f in made]
    library = linked(sources, tmp_path)
    for f, source in zip(made, sources, strict=True):
        check_call(f, Built(source, library), [RNG.normal(size=(3, 4)), np.array([0, 2])])


def test_random_numbers(tmp_path):
    rng = sc.random.default_rng(3)
    draws = [rng.normal(size=(5,)), rng.uniform(size=(3,)), rng.integers(0, 10, size=(4,))]
    f = sc.compile(draws, [], updates=rng.updates() if hasattr(rng, "updates") else None, name="draws")
    check_call(f, built(f, tmp_path), [])


def test_sorts_transforms_and_eigenvalues(tmp_path):
    """Of lanes of any length, in front of and behind other axes; in a loop, too."""
    x, z = sc.input("x", "float64", ("a", "n", "b")), sc.input("z", "complex128", ("n",))
    h = sc.input("h", "float16", ("n",))
    f = sc.compile([sc.sort(x, axis=1), sc.argsort(x, axis=1), sc.argsort(h), sc.fft.ifft(z), sc.fft.rfft(x, axis=1),
                    sc.fft.irfft(z, 2 * z.shape[0] - 1), sc.scan(lambda c, r: (c + 1, sc.sort(r, axis=0)), 0, x)[1]],
                   [x, z, h], name="lanes")
    program = built(f, tmp_path, ("-O1", "-fsanitize=undefined", "-fno-sanitize-recover"))
    for n in (1, 2, 15, 16, 17, 60, 97, 128, 1001):
        a = RNG.integers(0, n, size=(2, n, 3)) / 4
        a[0, ::5] = np.nan
        a[1, ::3] *= -0.0
        check_call(f, program, [a, RNG.normal(size=n) + 1j * RNG.normal(size=n), a[0, :, 0].astype("f2")])
    k = sc.compile(sc.fft.fft(z), [z], name="points")
    assert "no points" in built(k, tmp_path)([np.ones(0, complex)])[0]
    m = sc.matrix("m", dtype="complex128")
    values, vectors = sc.linalg.eigh(m + m.T.conj())
    g = sc.compile([values, vectors @ (values[:, None] * vectors.conj().T), vectors.conj().T @ vectors,
                    sc.linalg.eigvalsh(m.real + m.real.T)], [m], name="eigen")
    program = built(g, tmp_path, ("-O1",))
    for n in (0, 1, 2, 7, 40):
        m = RNG.normal(size=(n, n)) + 1j * RNG.normal(size=(n, n))
        for scale in (1, 1e-150, 1e150):
            check_call(g, program, [m * scale])
        check_call(g, program, [np.ones((n, n)) + np.diag([1e-9] * n)], 1e-8)
    assert "a nan or an infinity" in program([np.full((2, 2), np.nan + 0j)])[0]


def test_orthogonal_factors(tmp_path):
    """As LAPACK's, signs too: of tall, wide and empty matrices, of columns of zeros, of large and small numbers."""
    m = sc.matrix("m", dtype="complex128")
    q, r = sc.linalg.qr(m, mode="complete")
    f = sc.compile([*sc.linalg.qr(m.real), q, r, q @ r], [m], name="factors")
    program = built(f, tmp_path, ("-O1", "-fsanitize=undefined", "-fno-sanitize-recover"))
    for rows, columns in ((0, 2), (2, 0), (1, 1), (2, 5), (7, 7), (40, 3)):
        a = RNG.normal(size=(rows, columns)) + 1j * RNG.normal(size=(rows, columns))
        for scale in (1, 0, 1e-200, 1e200):
            check_call(f, program, [a * scale])
        a[:, ::2] = 0
        check_call(f, program, [a])


def test_singular_values(tmp_path):
    """Of tall, wide, square and empty matrices of any rank; all vectors, or as many as there are values."""
    m = sc.matrix("m", dtype="complex128")
    (u, s, vh), (left, _, right) = sc.linalg.svd(m, full_matrices=False), sc.linalg.svd(m)
    squares = [x.T.conj() @ x for x in (u, vh.T, left, right.T)]
    f = sc.compile([s, (u * s) @ vh, sc.linalg.svdvals(m.real), *squares], [m], name="singular")
    program = built(f, tmp_path, ("-O1", "-fsanitize=undefined", "-fno-sanitize-recover"))
    for rows, columns in ((0, 2), (2, 0), (1, 4), (4, 1), (3, 5), (5, 3), (30, 20)):
        a = RNG.normal(size=(rows, columns)) + 1j * RNG.normal(size=(rows, columns))
        for scale in (1, 0, 1e-200, 1e200, np.geomspace(1, 1e-20, columns)):
            check_call(f, program, [a * scale])
        a[:, 1:] = a[:, :1]
        check_call(f, program, [a])
    assert "a nan or an infinity" in program([np.full((2, 3), np.nan + 0j)])[0]


def test_products_of_few_rows(tmp_path):
    """Of which the matrix is read where it lies: up to 16 rows (32 of float32), of whole panels of columns."""
    a, b, c, d = [sc.input(n, t, (s, u)) for n, t, s, u in zip(
        "abcd", ["float64", "float64", "float32", "float32"], "mkmk", "knkn", strict=True)]
    f = sc.compile([a @ b, 0.5 * (a @ b) + a[:, :1], c @ d], [a, b, c, d], name="few_rows")
    program = built(f, tmp_path, ("-O1", "-fsanitize=undefined", "-fno-sanitize-recover"))
    for m, k, n in ((1, 3, 16), (2, 1, 16), (3, 130, 32), (4, 16, 64), (5, 300, 16), (16, 5, 8), (17, 5, 8),
                    (33, 4, 16), (4, 9, 7), (4, 0, 16), (0, 4, 16), (4, 4, 0)):
        x, y = RNG.normal(size=(m, k)), RNG.normal(size=(k, n))
        if m and k:
            check_call(f, program, [x, y, x.astype("f4"), y.astype("f4")], 1e-4)


def test_refusals_before_anything_is_written(tmp_path):
    x, m, p = sc.vector("x"), sc.matrix("m"), sc.vector("p")
    for name, y in (("eig", sc.linalg.eig(m)), ("ellipk", sc.special.ellipk(x)), ("print", sc.debug.print(x)),
                    ("ellipk", sc.scan(lambda c, a: (sc.special.ellipk(c), a), p, x)[0])):
        f = sc.compile(y, name="refused")
        for write in (f.export_c, f.export_library):
            with pytest.raises(ExportError, match=name) as e:
                write(tmp_path / "no")
            assert "test_c.py" in str(e.value)
    f = sc.compile(x[x > 0], [x])
    with pytest.raises(ExportError, match="sizes that are data"):
        f.export_c(tmp_path / "no")
    assert not (tmp_path / "no").exists()


def test_modes_variants_and_signatures(tmp_path):
    n = sc.input("x", "float64", ("n",))
    options = ({"mode": "reference"}, {"specialize": {"n": 3}}, {"backend": "numpy"}, {"donate": [n]})
    for k, f in enumerate(sc.compile(n * 2 + 1, [n], **o) for o in options):
        (tmp_path / str(k)).mkdir()
        program = built(f, tmp_path / str(k), ("-O0",))
        np.testing.assert_array_equal(program([np.arange(3.0)])[1][0], [1, 3, 5])
    g = sc.jit(lambda a: sc.exp(a) + 1)
    g.__name__ = "g"
    with pytest.raises(sc.InputError, match="no signature yet"):
        g.export_c(tmp_path)
    g(np.ones(3))
    assert g.export_c(tmp_path / "jit").endswith(".c") and "exponential" in g.to_stablehlo()
    g(np.ones((3, 2)))
    with pytest.raises(sc.InputError, match="2 signatures"):
        g.export_c(tmp_path)
    deferred = sc.compile(sc.Variable("A") + sc.Constant(1))
    deferred(A=np.ones(3))
    deferred.export_c(tmp_path / "deferred")


def test_paths(tmp_path):
    x = sc.vector("x")
    f = sc.compile(sc.concatenate([x + 1, sc.diff(x), x[::2]]), [x])  # of sizes that C has functions for
    f.export_c(tmp_path / "new" / "folder")
    folder = tmp_path / "new" / "folder"
    assert sorted(p.name for p in folder.iterdir()) == ["CMakeLists.txt", "example.c", "f.c", "f.h"]
    checks = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover")
    subprocess.run(["gcc", *STRICT, *checks, "-o", "main", "example.c", "f.c", "-lm"], cwd=folder, check=True)
    assert subprocess.check_output([folder / "main"]) == b"f: done\n"
    f.export_c(str(tmp_path / "new" / "folder"))
    (tmp_path / "file").write_text("")
    for bad in (tmp_path / "file", 3, b"bytes", "a\0b"):
        with pytest.raises(sc.InputError):
            f.export_c(bad)
    assert not list(tmp_path.rglob("*.tmp"))


@pytest.mark.long
def test_clones_and_the_header(tmp_path, programs):
    """Code for several processors is what users compile; a program includes the header alone."""
    f, program = programs["log_density"]
    library = linked([program.source], tmp_path, ("-O2", "-ftree-vectorize"), clones=True)
    check_call(f, Built(program.source, library), PROGRAMS["log_density"][1](40, RNG))
    (tmp_path / "user.c").write_text('#include "log_density.h"\nint main(void) { return log_density_message(0)[0]; }\n')
    subprocess.run(["gcc", *STRICT, "-fsyntax-only", tmp_path / "user.c"], check=True)
