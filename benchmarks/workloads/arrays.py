"""Fourier transforms, masks, unique elements and a product with a sparse matrix, as NumPy and SciPy are written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import kit
from benchmarks.workload import Array, Built, Case, Run, Workload

COLUMNS = 16


@dataclass(frozen=True)
class Program(Case):
    shape: tuple[int, ...] = ()


WORKLOAD: Workload[Program] = Workload("arrays", "Fourier transforms, masks, unique elements, sparse products, float64")
WORKLOAD.add(
    Program("fft", "float64", 1e-12, units=64 * 1024, shape=(64, 1024)),
    Program("fft_long", "float64", 1e-12, units=2**18, shape=(2**18,)),
    Program("filter2d", "float64", 1e-12, units=256 * 256, shape=(256, 256)),
    Program("mask", "float64", 1e-12, units=100_000, shape=(100_000,)),
    Program("mask_rows", "float64", 1e-12, units=20_000 * 16, shape=(20_000, 16)),
    Program("unique", "float64", 0, units=100_000, shape=(100_000,)),
    Program("counts", "float64", 0, units=100_000, shape=(100_000,)),
    Program("sparse", "float64", 1e-12, units=200_000, shape=(20_000, COLUMNS)),
)


def formulas(xp: Any) -> dict[str, Callable[[Any], Any]]:
    """The programs, of NumPy's names."""
    return {
        "fft": lambda x: xp.abs(xp.fft.rfft(x)) ** 2,
        "fft_long": lambda x: xp.abs(xp.fft.rfft(x)) ** 2,
        "filter2d": lambda x: xp.fft.irfft2(xp.fft.rfft2(x) * 0.5, s=x.shape),
        "mask": lambda x: xp.sqrt(x[x > 0]).sum(),
        "mask_rows": lambda x: x[x[:, 0] > 0].mean(0),
        "unique": lambda x: xp.unique(xp.round(x * 100)),
        "counts": lambda x: xp.unique(xp.round(x * 100), return_counts=True)[1],
    }


def sparse_matrix(case: Program) -> Any:
    """About ten elements a row."""
    import scipy.sparse

    n = case.shape[0]
    return scipy.sparse.random_array((n, n), density=10 / n, format="csr", rng=np.random.default_rng(1))


@WORKLOAD.inputs
def inputs(case: Program) -> list[Array]:
    return [np.random.default_rng(0).normal(size=case.shape)]


@WORKLOAD.reference
def reference(case: Program, x: Array) -> Any:
    return sparse_matrix(case) @ x if case.name == "sparse" else formulas(np)[case.name](x)


@WORKLOAD.peer("numpy")
def numpy_builder(run: Run[Program], x: Array) -> Callable[..., Any] | Built:
    """NumPy; of sparse matrices and long transforms SciPy, which is faster."""
    if run.case.name == "sparse":
        return Built(lambda m, x: m @ x, [sparse_matrix(run.case), x])
    if run.case.name.startswith("fft"):
        import scipy.fft

        return lambda x: np.abs(scipy.fft.rfft(x)) ** 2
    return formulas(np)[run.case.name]


@WORKLOAD.peer("jax")
def jax_builder(run: Run[Program], x: Any) -> Callable[..., Any] | Built:
    """Compiled, but for sizes that are data, which JAX computes step by step."""
    import jax
    import jax.numpy as jnp

    if run.case.name == "sparse":
        from jax.experimental import sparse

        return Built(jax.jit(lambda m, x: m @ x), [sparse.BCSR.from_scipy_sparse(sparse_matrix(run.case)), x])
    program = formulas(jnp)[run.case.name]
    return jax.jit(program) if run.case.name in ("fft", "fft_long", "filter2d") else program


@WORKLOAD.peer("symc")
def symc_builder(run: Run[Program], x: Array) -> Callable[..., Any] | Built:
    """The NumPy formulas, traced."""
    import symc as sc

    symbols = kit.symc_inputs([x])
    if run.case.name == "sparse":
        a = sc.sparse.input("a")
        return Built(sc.compile(a @ symbols[0], [a, *symbols], threads=run.threads), [sparse_matrix(run.case), x])
    return sc.compile(formulas(np)[run.case.name](*symbols), symbols, threads=run.threads)
