"""Helpers that builders share. Peers are imported inside, so that no worker pays for another's library."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.workload import Array, Arrays, Run

prange = range
"""Loops of Numba kernels count with this name; `jit` makes it Numba's own before the kernel is compiled."""


def jit(run: Run[Any], kernel: Callable[..., Any]) -> Callable[..., Any]:
    """A hand-written kernel under Numba, with every option that makes it faster."""
    import numba

    if "prange" in kernel.__globals__:
        kernel.__globals__["prange"] = numba.prange
    return numba.njit(cache=True, fastmath=True, error_model="numpy", parallel=run.threads > 1)(kernel)


def torch_function(run: Run[Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself for eager PyTorch, a compiled one for the ``torch.compile`` peer."""
    import torch

    return torch.compile(function, fullgraph=True) if run.peer == "torch.compile" else function


def pytensor_function(run: Run[Any], inputs: Sequence[Any], outputs: Any, **options: Any) -> Callable[..., Any]:
    """A PyTensor function on the backend of the running peer, without its input checks (its fastest setting)."""
    import pytensor

    if run.peer == "pytensor-c":
        mode = pytensor.compile.mode.Mode(linker="cvm", optimizer="fast_run")
    else:
        mode = pytensor.compile.mode.get_mode("NUMBA")
    function = pytensor.function(inputs, outputs, mode=mode, **options)
    function.trust_input = True
    return function


def pytensor_inputs(arrays: Arrays) -> list[Any]:
    """Symbolic inputs of the arrays' dtypes and ranks; sizes stay open, as for symc."""
    import pytensor.tensor as pt

    return [pt.tensor(f"x{i}", dtype=str(a.dtype), shape=(None,) * a.ndim) for i, a in enumerate(arrays)]


def symc_inputs(arrays: Arrays) -> list[Any]:
    """Symbolic inputs of the arrays' dtypes and ranks, where equal sizes share one name."""
    import symc as sc

    fresh = (f"n{i}" for i in itertools.count())
    sizes: dict[int, str] = {}
    shapes = [tuple(sizes.get(n) or sizes.setdefault(n, next(fresh)) for n in array.shape) for array in arrays]
    return [sc.input(f"x{i}", str(a.dtype), shape=shape) for i, (a, shape) in enumerate(zip(arrays, shapes))]


def to_native(peer: str, arrays: Arrays) -> list[Any]:
    """The arrays as the peer holds them; NumPy arrays for all but JAX and PyTorch."""
    if peer == "jax":
        import jax

        return [jax.device_put(array) for array in arrays]
    if peer.startswith("torch"):
        import torch

        return [torch.from_numpy(array.copy()) for array in arrays]
    return list(arrays)


def to_numpy(result: Any) -> list[Array]:
    """A result, or a nest of lists and tuples of results, as a flat list of arrays."""
    if isinstance(result, list | tuple):
        return [array for item in result for array in to_numpy(item)]
    return [np.asarray(result.detach() if hasattr(result, "detach") else result)]


def wait(peer: str, result: Any) -> None:
    """Returns when the result is computed: JAX runs calls in the background."""
    if peer == "jax":
        import jax

        jax.block_until_ready(result)
