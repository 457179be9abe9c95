"""Helpers that builders share. Peers are imported inside, so that no worker pays for another's library."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.workload import Array, Arrays, Built, Run

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


def torch_value_and_grad(run: Run[Any], formula: Callable[..., Any], leaves: Sequence[Any]) -> Callable[..., Any]:
    """A function of PyTorch that returns ``formula(*inputs)`` and its gradients by ``leaves``, as users write it."""
    import torch

    forward = torch_function(run, formula)
    leaves = [leaf.requires_grad_(True) for leaf in leaves]

    def with_gradients(*inputs: Any) -> Any:
        value = forward(*inputs)
        return value, *torch.autograd.grad(value, leaves)

    return with_gradients


def casadi_built(run: Run[Any], symbols: Sequence[Any], outputs: Sequence[Any], arrays: Arrays,
                 shapes: Sequence[tuple[int, ...]]) -> Built:
    """A CasADi function; as ``casadi-buffer`` one that reads and writes the same buffers in every call.

    CasADi's results are columns; ``shapes`` says what the check compares them as.
    """
    import casadi

    def shaped(result: Any) -> list[Array]:
        results = result if isinstance(result, list | tuple) else [result]
        return [np.asarray(r).reshape(shape) for r, shape in zip(results, shapes)]

    function = casadi.Function("f", list(symbols), list(outputs))
    if run.peer == "casadi":
        return Built(function, arrays, shaped)
    buffer, evaluate = function.buffer()
    results = [np.zeros(function.numel_out(i)) for i in range(function.n_out())]
    for i, array in enumerate(arrays):
        buffer.set_arg(i, memoryview(array))
    for i, result in enumerate(results):
        buffer.set_res(i, memoryview(result))

    def call(keep: Any = buffer) -> list[Array]:
        evaluate()
        return results

    return Built(call, [], shaped)


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


def drjit_map(run: Run[Any], formula: Callable[..., Any], arrays: Arrays) -> Built:
    """An elementwise formula under Dr.Jit, frozen: later calls launch the kernel of the first."""
    import drjit

    drjit.set_thread_count(run.threads)
    real = getattr(importlib.import_module("drjit.llvm"), "Float" if run.case.dtype == "float32" else "Float64")
    frozen, inputs = drjit.freeze(formula), [real(a) for a in arrays]
    drjit.eval(inputs)

    def call(*inputs: Any) -> Any:
        result = frozen(*inputs)
        drjit.eval(result)
        drjit.sync_thread()
        return result

    return Built(call, inputs)


def halide_map(run: Run[Any], formula: Callable[..., Any], arrays: Arrays) -> Built:
    """An elementwise formula under Halide, in vectors of 64 bytes, which writes the same buffers in every call."""
    import halide

    real, i, function = halide.Float(8 * arrays[0].itemsize), halide.Var("i"), halide.Func("f")
    inputs = [halide.Buffer(a) for a in arrays]
    value = formula(*(b[i] for b in inputs))
    function[i] = value
    function.vectorize(i, 64 // arrays[0].itemsize)
    function.compile_jit(halide.get_jit_target_from_environment())
    results = [halide.Buffer(real, [arrays[0].size]) for _ in (value if isinstance(value, tuple) else [value])]

    def call() -> Any:
        function.realize(results if len(results) > 1 else results[0])
        return results

    return Built(call, [], lambda results: [np.array(r) for r in results])


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
