"""Linear algebra on a device: every op and sample that it has, beside its reference; strips, batches, errors,
derivatives. On the emulated device, checked, so that every kernel is also free of races."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import symc as sc
from symc.codegen.cuda.matrices import PARTS, REALS, entries_of, text_of
from symc.codegen.cuda.matrix_text import WIDTH
from symc.codegen.cuda.source import Entry
from symc.ir.op import Op
from symc.runtime.cuda import factor, nvrtc
from symc.runtime.cuda.device import Signature
from symc.runtime.cuda.devices import context, devices_from
from symc.runtime.cuda.solver import recipes
from symc.runtime.emulator import EmulatedDevice
from symc.runtime.emulator.device import BACKWARD, FORWARD
from symc.testing import emulated_cuda
from tests.cuda.corpus import Item
from tests.cuda.emulated import needs_compiler
from tests.cuda.test_nvrtc_gate import complaint
from tests.ir.op_cases import SAMPLED, apply, cases, evaluate, observed

pytestmark = needs_compiler


@pytest.fixture(scope="module", autouse=True)
def device() -> Iterator[None]:
    with emulated_cuda():
        yield


def compiled(outputs, leaves, name: str):
    return sc.compile([sc.Tensor(o) for o in outputs], [sc.Tensor(x) for x in leaves], device="cuda", name=name)


def close(got: np.ndarray, want: np.ndarray, factor: float = 200) -> None:
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    if want.dtype.kind in "fc":
        eps = factor * float(np.finfo(want.dtype).eps)
        np.testing.assert_allclose(got, want, rtol=eps, atol=eps * max(1, float(np.abs(want).max(initial=0))))
    else:
        np.testing.assert_array_equal(got, want)


def solved_cases(op: Op) -> list[tuple[list[np.ndarray], dict]]:
    return [(arrays, attrs) for arrays, attrs in cases(op) if all(a.dtype.char in REALS or a.dtype.kind == "i"
                                                               for a in arrays)]


SOLVED = [op for op in SAMPLED if op.name in {*PARTS, "cho_solve", "solve", "inv", "det", "slogdet", "pinv"}]


@pytest.mark.parametrize("op", [op for op in SOLVED if op.name not in ("svd", "eig", "eigvals")],
                         ids=lambda op: op.name)
def test_samples(op: Op):
    found = solved_cases(op)
    wanted = {d for d in map(np.dtype, ("f4", "f8", "c16")) if d.kind in (op.facts.kinds or "fc")}
    assert wanted and wanted <= {a.dtype for arrays, _ in found for a in arrays}
    samples = []
    for arrays, attrs in found if op.name in PARTS else found[::3]:
        v, leaves = apply(op, arrays, attrs)
        samples.append((arrays, attrs, leaves, observed(v)))
    f = compiled([o for *_, outputs in samples for o in outputs], [x for *_, leaves, _ in samples for x in leaves],
                 op.name)
    results = iter(f(*[a for arrays, *_ in samples for a in arrays]))
    for arrays, attrs, leaves, outputs in samples:
        for want in evaluate(outputs, leaves, arrays):
            try:
                close(next(results).numpy(), want)
            except AssertionError as e:
                raise AssertionError(f"{[(a.dtype, a.shape) for a in arrays]}, {attrs}: {e}") from None


def check_svd(a: np.ndarray, full: bool, u: np.ndarray, s: np.ndarray, vh: np.ndarray) -> None:
    """What singular vectors must be; which of them they are is not said."""
    eps = 100 * float(np.finfo(a.dtype).eps) * max(1, *a.shape[-2:]) ** 0.5
    k = s.shape[-1]
    for got, want in zip((u, s, vh), np.linalg.svd(a, full_matrices=full), strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
    size = max(1.0, float(np.abs(a).max(initial=0)))
    np.testing.assert_allclose(s, np.linalg.svd(a, compute_uv=False), atol=eps * size, rtol=eps)
    np.testing.assert_allclose(u[..., :k] * s[..., None, :] @ vh[..., :k, :], a, atol=eps * size)
    for q in (u.swapaxes(-1, -2), vh):
        np.testing.assert_allclose(q @ q.conj().swapaxes(-1, -2), np.broadcast_to(np.eye(q.shape[-2]), (*q.shape[:-1],
                                   q.shape[-2])), atol=eps)


def svd_on_device(a: np.ndarray, full: bool) -> list[np.ndarray]:
    x = sc.input("x", str(a.dtype), a.shape)
    f = sc.compile(list(np.linalg.svd(x, full_matrices=full)), [x], device="cuda", name="svd")
    return [y.numpy() for y in f(a)]


def test_svd_samples():
    for arrays, attrs in solved_cases(next(op for op in SOLVED if op.name == "svd")):
        check_svd(arrays[0], attrs["full"], *svd_on_device(arrays[0], attrs["full"]))


def test_every_op_has_a_recipe():
    assert set(recipes()) == set(PARTS)


# --- larger than a strip ----------------------------------------------------------------------------------------------


def random(*shape: int, dtype: str = "float64") -> np.ndarray:
    rng = np.random.default_rng(sum(shape))
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if dtype.startswith("c") else x).astype(dtype)


def on_device(f, *arrays: np.ndarray) -> list[np.ndarray]:
    """What ``f`` gives for symbolic arrays whose sizes are not known, compiled and run."""
    inputs = [sc.input(f"x{k}", str(a.dtype), [f"n{k}{i}" for i in range(a.ndim)]) for k, a in enumerate(arrays)]
    out = f(*inputs)
    g = sc.compile(list(out) if isinstance(out, tuple | list) else [out], inputs, device="cuda")
    return [y.numpy() for y in g(*arrays)]


@pytest.mark.parametrize("n", [32, 70])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_strips(n, dtype):
    a = random(2, n, n, dtype=dtype)
    definite = a @ a.conj().swapaxes(-1, -2) + n * np.eye(n, dtype=dtype)
    loose = 4 * n
    rows = random(2, n, 1, dtype=dtype), random(2, n, 70, dtype=dtype)

    def everything(a, d, m, b, c):
        return [np.linalg.cholesky(d), np.linalg.inv(d), np.linalg.solve(m, b), np.linalg.solve(m, c),
                *np.linalg.slogdet(a)]

    given = a, definite, definite + a, *rows
    *found, sign, log = on_device(everything, *given)
    *wanted, want_sign, want_log = everything(*given)
    for got, want in zip(found, wanted, strict=True):
        close(got, want, loose)
    for got, want in zip((sign, log), (want_sign, want_log), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4 if dtype == "float32" else 1e-11)


def test_nan_goes_through_a_cholesky_factor():
    a = np.eye(3)
    a[1, 0] = np.nan
    np.testing.assert_array_equal(on_device(np.linalg.cholesky, a)[0], sc_cholesky(a))


def sc_cholesky(a: np.ndarray) -> np.ndarray:
    x = sc.input("x", "float64", (3, 3))
    return sc.compile(np.linalg.cholesky(x), [x])(a)


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("trans", [0, 1])
@pytest.mark.parametrize("unit", [True, False])
@pytest.mark.parametrize("columns", [3, 71])
def test_triangular_strips(lower, trans, unit, columns):
    from scipy.linalg import solve_triangular

    n = 70
    a, b = random(n, n) / n + np.eye(n), random(n, columns)
    how = dict(lower=lower, trans=trans, unit_diagonal=unit)
    got = on_device(lambda a, b: sc.linalg.solve_triangular(a, b, **how), a, b)[0]
    close(got, solve_triangular(a, b, **how))


def test_more_columns_than_blocks(monkeypatch):
    monkeypatch.setattr(factor, "MOST", 2)
    a, b = random(3, 3) + 3 * np.eye(3), random(3, 500)
    close(on_device(np.linalg.solve, a, b)[0], np.linalg.solve(a, b))


@pytest.mark.parametrize("shape", [(70, 33), (33, 70), (65, 65), (3, 40), (2, 66, 35)])
@pytest.mark.parametrize("mode", ["reduced", "complete"])
def test_qr_strips(shape, mode):
    a = random(*shape, dtype="complex128" if shape[0] == 65 else "float64")
    for got, want in zip(on_device(lambda x: tuple(np.linalg.qr(x, mode=mode)), a), np.linalg.qr(a, mode), strict=True):
        close(got, want, 1000)


def test_qr_of_what_has_no_rank():
    a = np.zeros((5, 3))
    a[:, 0] = 1e-200
    q, r = on_device(lambda x: tuple(np.linalg.qr(x, mode="complete")), a)
    np.testing.assert_allclose(q.T @ q, np.eye(5), atol=1e-14)
    np.testing.assert_allclose(q @ r, a, atol=1e-215)


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("shape", [(40, 7), (7, 40), (35, 35), (2, 5, 34)])
def test_svd_of_larger_ones(shape, full):
    for a in (random(*shape, dtype="complex128"), random(*shape, dtype="float32")):
        check_svd(a, full, *svd_on_device(a, full))


def test_svd_of_what_has_no_rank():
    low = random(6, 2) @ random(2, 9)
    for a in (low, low.T, np.zeros((4, 3)), np.ones((5, 5)), low * 1e-160, np.diag([1e10, 1.0, 1e-10])):
        for full in (True, False):
            check_svd(a, full, *svd_on_device(a, full))


@pytest.mark.parametrize("n", [2, 37])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_eigenvalues(n, dtype):
    a = random(2, n, n, dtype=dtype)
    a += a.swapaxes(-1, -2)
    for m in (a, np.stack([np.eye(n, dtype=dtype), np.ones((n, n), dtype)]), a * dtype_small(dtype)):
        w, v = on_device(lambda x: tuple(np.linalg.eigh(x)), m)
        close(w, np.linalg.eigvalsh(m), 30)
        close(v @ (w[..., None] * v.swapaxes(-1, -2)), m, 100)
        close(v.swapaxes(-1, -2) @ v, np.broadcast_to(np.eye(n, dtype=dtype), m.shape), 10)
        close(on_device(np.linalg.eigvalsh, m)[0], w, 30)


def dtype_small(dtype: str) -> np.ndarray:
    """A factor whose square is no number of the dtype."""
    return np.asarray(1e-30 if dtype == "float32" else 1e-200, dtype)


def test_exponentials_of_small_and_large_matrices():
    from scipy.linalg import expm

    n = WIDTH + 1
    a = np.stack([random(n, n) * size for size in (0.0, 1e-8, 0.1, 1.0)] + [-random(n, n) @ random(n, n).T])
    close(on_device(sc.linalg.expm, a)[0], np.stack([expm(x) for x in a]), 1e6)
    assert np.isnan(on_device(sc.linalg.expm, np.full((2, 2), 1e20))[0]).all()


def check_eig(a: np.ndarray, loose: float = 1000) -> None:
    """Eigenvalues in any order, and vectors of length 1 that belong to them."""
    w, v = on_device(lambda x: tuple(np.linalg.eig(x)), a)
    assert w.dtype == v.dtype == np.result_type(a, np.complex64)
    eps = loose * float(np.finfo(a.dtype).eps) * max(1.0, float(np.abs(a).max(initial=0)))
    np.testing.assert_allclose(a @ v, v * w[..., None, :], atol=eps * max(1, a.shape[-1]))
    np.testing.assert_allclose((np.abs(v) ** 2).sum(-2), np.ones(w.shape), rtol=1e-5)
    alone = on_device(np.linalg.eigvals, a)[0]
    for k in np.ndindex(a.shape[:-2]):
        left = list(np.linalg.eigvals(a[k]))
        for x in w[k]:
            nearest = min(left, key=lambda y, x=x: abs(x - y))
            np.testing.assert_allclose(x, nearest, atol=eps * max(1, a.shape[-1]))
            left.remove(nearest)
            assert min(abs(alone[k] - x)) <= 1e-5 * max(1.0, abs(x))


def test_eigenvalues_of_any_matrix():
    for arrays, _ in solved_cases(next(op for op in SOLVED if op.name == "eig")):
        check_eig(arrays[0])
    for n in (7, 40):
        check_eig(random(2, n, n))
        check_eig(random(n, n, dtype="complex64"))
    check_eig(np.stack([np.eye(4), np.roll(np.eye(4), 1, 0), np.zeros((4, 4)), np.diag([1e-5, 1, 1, 1e5])]))
    w, v = on_device(lambda x: tuple(np.linalg.eig(x)), np.diag(np.arange(5.0)) + np.ones((5, 5)))
    assert max(abs(w.imag).max(), abs(v.imag).max()) < 1e-13, "what can be real is"
    close(np.sort(on_device(np.linalg.eigvals, np.triu(np.ones((6, 6))))[0].real), np.ones(6))
    with pytest.raises(np.linalg.LinAlgError, match="converge"):
        on_device(np.linalg.eigvals, np.full((3, 3), np.nan))


# --- what has no result -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("f", "a", "what"), [
    (np.linalg.cholesky, np.diag([1.0, -1.0]), "not positive definite"),
    (np.linalg.cholesky, np.stack([np.eye(40), np.eye(40) - 2 * np.outer(np.eye(40)[36], np.eye(40)[36])]), "definite"),
    (np.linalg.inv, np.ones((2, 2)), "singular"),
    (lambda x: sc.linalg.solve_triangular(x, x), np.triu(np.ones((40, 40)), 1), "singular"),
    (np.linalg.eigvalsh, np.full((3, 3), np.nan), "converge"),
    (lambda x: np.linalg.svd(x, compute_uv=False), np.full((3, 3), np.nan), "converge"),
])  # fmt: skip
def test_errors_name_the_line(f, a, what):
    x = sc.input("x", "float64", a.shape)
    y = f(x)  # this is the line
    g = sc.compile(y, [x], device="cuda")
    on_host = sc.compile(y, [x])
    found = g(a)
    with pytest.raises(np.linalg.LinAlgError, match=what) as e:
        found.numpy()
    with pytest.raises(np.linalg.LinAlgError) as other:
        on_host(a)
    assert str(e.value).splitlines()[0] == str(other.value).splitlines()[0]
    assert "test_device_linalg.py" in str(e.value)
    good = np.eye(a.shape[-1]) + np.zeros(a.shape)
    assert np.isfinite(g(good).numpy()).all(), "the flag is gone"


# --- in programs ------------------------------------------------------------------------------------------------------


def log_likelihood(a, b):
    low = np.linalg.cholesky(a @ a.T + 3 * sc.eye(a.shape[0]))
    z = sc.linalg.solve_triangular(low, b, lower=True)
    return (z * z).sum() + np.log(np.linalg.diagonal(low)).sum() + np.linalg.slogdet(a + b)[1]


@pytest.mark.parametrize("f", [
    log_likelihood,
    lambda a, b: (np.linalg.solve(a + 9 * sc.eye(5), b) ** 2).sum(),
    lambda a, b: (np.linalg.qr(a)[0] * b).sum() + (np.linalg.qr(a)[1] * b).sum(),
    lambda a, b: (np.linalg.eigh(a @ a.T)[0] * b[0]).sum(),
    lambda a, b: np.linalg.svd(a @ b, compute_uv=False).sum(),
    lambda a, b: (np.linalg.eigvals(a + b).real ** 2).sum(),
    lambda a, b: (sc.linalg.expm(a / 4) * b).sum(),
], ids=["likelihood", "solve", "qr", "eigh", "svd", "eigvals", "expm"])
def test_gradients(f):
    a, b = random(5, 5) + 3 * np.eye(5), random(5, 5)
    x, y = sc.input("x", "float64", (5, 5)), sc.input("y", "float64", (5, 5))
    cost = f(x, y)
    outputs = [cost, *sc.grad(cost, [x, y])]
    want = sc.compile(outputs, [x, y])(a, b)
    for got, w in zip(sc.compile(outputs, [x, y], device="cuda")(a, b), want, strict=True):
        close(got.numpy(), np.asarray(w), 1000)


def test_calls_are_graphs_without_the_host():
    a = random(40, 40)
    a = a @ a.T + 40 * np.eye(40)
    x = sc.input("x", "float64", (40, 40))
    f = sc.compile([np.linalg.inv(x), np.linalg.det(x)], [x], device="cuda")
    given = sc.device_array(a)
    counters = context("cuda").device.counters
    for _ in range(2):
        f(given)
    before = dict(vars(counters))
    for _ in range(3):
        found = f(given)
    done = {k: n - before[k] for k, n in vars(counters).items()}
    assert (done["h2d_bytes"], done["d2h_bytes"], done["syncs"]) == (0, 0, 0)
    assert done["graph_launches"] >= 1
    close(found[0].numpy(), np.linalg.inv(a), 1000)


def test_eigenvalues_are_a_librarys():
    """One call, and one kernel that looks whether it went well; and no graph, as the library may wait for the host."""
    a = random(40, 40)
    x = sc.input("x", "float64", (40, 40))
    f = sc.compile([np.linalg.eigvalsh(x + x.T), np.linalg.inv(x)], [x], device="cuda")
    given, counters = sc.device_array(a), context("cuda").device.counters
    before = counters.graph_launches
    for _ in range(3):
        close(f(given)[0].numpy(), np.linalg.eigvalsh(a + a.T), 100)
    assert counters.graph_launches == before
    assert [k.kind for k in f.launches()].count("solver") == 1


def test_what_is_launched():
    """Three strips of columns: two products, one triangle copied, three squares, two parts below them."""
    x = sc.input("x", "float64", (70, 70))
    f = sc.compile(np.linalg.cholesky(x), [x], device="cuda")
    a = sc.device_array(70 * np.eye(70))
    counters = context("cuda").device.counters
    launches, products = counters.launches, counters.library_calls
    f(a)
    assert (counters.launches - launches, counters.library_calls - products) == (6, 2)
    assert "cholesky_block(" in f.source


def everything(x):
    return [np.linalg.inv(x), *np.linalg.qr(x), *np.linalg.eigh(x), *np.linalg.svd(x), *np.linalg.eig(x),
            sc.linalg.expm(x), np.linalg.cholesky(x @ x.T + sc.eye(7))]


def test_the_same_bits_in_any_order_of_threads():
    found = []
    for order in (FORWARD, BACKWARD, 7):
        with devices_from(lambda index, order=order: EmulatedDevice(index, order=order)):
            found.append([y.tobytes() for y in on_device(everything, random(7, 7))])
    assert found[0] == found[1] == found[2]


def test_in_a_loop_whose_rows_start_anywhere():
    """Matrices of nine numbers: rows of the loop are no whole vectors."""
    a = random(4, 3, 3, dtype="float32")
    a = a @ a.swapaxes(-1, -2) + 3 * np.eye(3, dtype="float32")
    x = sc.input("x", "float32", (4, 3, 3))

    def step(carry, m):
        low = np.linalg.cholesky(m + carry)
        return low @ low.T / 4, np.linalg.solve(m, low)

    _, ys = sc.scan(step, sc.zeros((3, 3), "float32"), x)
    close(sc.compile(ys, [x], device="cuda")(a).numpy(), sc.compile(ys, [x])(a), 1000)


def test_no_columns_and_no_matrices():
    for shape, columns in (((3, 3), 0), ((0, 0), 2), ((0, 3, 3), 2)):
        a, b = np.zeros(shape) + np.eye(shape[-1]), np.ones((*shape[:-1], columns))
        np.testing.assert_array_equal(on_device(np.linalg.solve, a, b)[0], b)


# --- for a GPU --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_100"])
def test_kernels_compile_for_a_gpu(arch):
    try:
        nvrtc.library()
    except sc.InputError as e:
        pytest.skip(str(e))
    entries = {name: how for op in PARTS for name, how in entries_of(op).items()}
    for dtype in map(np.dtype, {"sm_75": "f", "sm_90": "dF", "sm_100": "D"}[arch]):  # each once, as in test_nvrtc_gate
        made = nvrtc.compile_cubin(text_of(tuple(PARTS), dtype), arch)
        made.check([Signature(name, (8,) * count) for name, (count, _) in entries.items()])
        assert made.warnings == "" and set(made.resources) == set(entries)
        for name, (_, threads) in entries.items():
            what = complaint(Item(name, "", None, ""), Entry(name, (), (1, 1, 1), threads), made.resources[name])
            assert not what, f"{name} of {dtype}: {what}"
