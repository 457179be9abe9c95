"""symc: a static-declaration symbolic compiler.

NumPy-like expressions become one graph, are differentiated symbolically, optimized, given memory by a plan, and run as
native code. ``import symc as sc``; then ``sc.input``, ``sc.compile``, ``sc.grad``, and NumPy's functions by name.

What builds expressions is imported here. The rest (the optimizer, the code generators, derivatives, random numbers,
tools) is imported when one of its names in ``_LAZY`` is first asked for, so that a program starts fast; to programs
and type checkers that makes no difference.
"""

import copyreg as _copyreg
import sys as _sys
from importlib import import_module as _import
from types import ModuleType as _Module
from typing import TYPE_CHECKING
from typing import Any as _Any

import numpy as _np

from symc.ir.garbage import no_collections as _no_collections

with _no_collections(lasting=True):  # an eighth of this import
    from symc import ir, numpy_api
    from symc.errors import (
        AssertError,
        CheckError,
        ConvergenceError,
        DeviceError,
        DTypeError,
        ExecutionError,
        ExportError,
        GradientError,
        IndexingError,
        InputError,
        InternalError,
        LinAlgError,
        MemoryBudgetError,
        NonFiniteError,
        OutOfMemoryError,
        PackageError,
        ParseError,
        PipelineError,
        PlanError,
        ShapeError,
        SymbolicValueError,
        SymcError,
    )
    from symc.ir import ops
    from symc.numpy_api import *  # noqa: F403 - NumPy's functions, constants and dtypes under their own names
    from symc.numpy_api import bool
    from symc.settings import config
    from symc.tensors.convert import default_float, set_default_float
    from symc.tensors.deferred import Deferred
    from symc.tensors.inputs import Constant, Variable, input, matrix, scalar, tensor3, tensor4, vector
    from symc.tensors.public import DISPATCH as _DISPATCH
    from symc.tensors.state import SharedVariable, shared
    from symc.tensors.tensor import Tensor

__version__ = "0.1.0"
_DISPATCH[_np.apply_along_axis] = lambda *args, **kwargs: _sys.modules[__name__].apply_along_axis(*args, **kwargs)

#: Names that are imported when they are first asked for, by the module that has them. ``a=b``: it is called b there.
_LAZY = {
    "tensors.assumptions": "assume",
    "tensors.callsite": "scope=scope_named",
    "codegen.cuda.user": "CudaKernel",
    "transforms.autodiff": "DisconnectedWarning grad grad_clip grad_scale hvp jvp reverse_grad stop_gradient "
    "value_and_grad vjp zero_grad",
    "transforms.c_function": "c_function",
    "transforms.checkpoint": "checkpoint",
    "transforms.control": "cond fori_loop scan switch while_loop",
    "transforms.custom_op": "op",
    "tools.debugging.bisect": "bisect",
    "tools.debugging.diff": "diff",  # NumPy's diff, and that of functions
    "driver.compile": "compile",
    "driver.function": "CompiledFunction",
    "export.onnx_import": "from_onnx",
    "transforms.folds": "associative_scan foldl foldr map=map_ reduce",
    "transforms.function_op": "function_op",
    "tools.gradcheck": "verify_grad",
    "transforms.implicit": "custom_fixed_point custom_root",
    "params.collection": "Params",
    "params.files": "load_params save_params",
    "ir.parse": "parse",
    "transforms.jacobians": "hessian jacobian",
    "driver.jit": "jit",
    "tools.lint": "lint",
    "nn.windows": "avg_pool conv conv_transpose max_pool",
    "tools.op_check": "check_op",
    "runtime.cuda.arrays": "DeviceArray device_array",
    "segments.arrays": "RaggedArray",
    "segments.value": "ragged=Ragged",
    "driver.files": "load",
    "special": "digamma erf erfc erfinv gammaln",
    "transforms.substitution": "clone substitute",
    "transforms.taps": "taps",
    "transforms.vmap": "apply_along_axis vmap",
}
_WHERE = {
    name: (f"{__name__}.{module}", there or name)
    for module, names in _LAZY.items()
    for name, _, there in (item.partition("=") for item in names.split())
}
#: Modules that are part of what users name.
_MODULES = ("debug", "dist", "fft", "init", "linalg", "nn", "optim", "parallel", "random", "sparse", "special", "stats")

if TYPE_CHECKING:
    from symc import debug, dist, fft, init, linalg, nn, optim, parallel, random, sparse, special, stats
    from symc.codegen.cuda.user import CudaKernel
    from symc.driver.compile import compile
    from symc.driver.files import load
    from symc.driver.function import CompiledFunction
    from symc.driver.jit import jit
    from symc.export.onnx_import import from_onnx
    from symc.ir.parse import parse
    from symc.nn.windows import avg_pool, conv, conv_transpose, max_pool
    from symc.params.collection import Params
    from symc.params.files import load_params, save_params
    from symc.runtime.cuda.arrays import DeviceArray, device_array
    from symc.segments.arrays import RaggedArray
    from symc.segments.value import Ragged as ragged
    from symc.special import digamma, erf, erfc, erfinv, gammaln
    from symc.tensors.assumptions import assume
    from symc.tensors.callsite import scope_named as scope
    from symc.tools.debugging.bisect import bisect
    from symc.tools.debugging.diff import diff
    from symc.tools.gradcheck import verify_grad
    from symc.tools.lint import lint
    from symc.tools.op_check import check_op
    from symc.transforms.autodiff import (
        DisconnectedWarning,
        grad,
        grad_clip,
        grad_scale,
        hvp,
        jvp,
        reverse_grad,
        stop_gradient,
        value_and_grad,
        vjp,
        zero_grad,
    )
    from symc.transforms.c_function import c_function
    from symc.transforms.checkpoint import checkpoint
    from symc.transforms.control import cond, fori_loop, scan, switch, while_loop
    from symc.transforms.custom_op import op
    from symc.transforms.folds import associative_scan, foldl, foldr, reduce
    from symc.transforms.folds import map_ as map
    from symc.transforms.function_op import function_op
    from symc.transforms.implicit import custom_fixed_point, custom_root
    from symc.transforms.jacobians import hessian, jacobian
    from symc.transforms.substitution import clone, substitute
    from symc.transforms.taps import taps
    from symc.transforms.vmap import apply_along_axis, vmap
else:
    for _name in _WHERE:
        globals().pop(_name, None)  # NumPy's diff, and packages called like a function

    def __getattr__(name: str) -> _Any:
        """Public names that come later, and modules of the package by name."""
        if name in _WHERE:
            module, there = _WHERE[name]
            with _no_collections(lasting=True):
                found = getattr(_import(module), there)
            globals()[name] = found
            return found
        if not name.startswith("_"):
            whole = f"{__name__}.{name}"
            try:
                return _import(whole)
            except ModuleNotFoundError as e:
                if e.name != whole:
                    raise
        from symc.tensors.guidance import no_name

        rooms = ("linalg", "nn", "optim", "init", "special", "fft", "random", "sparse", "debug")
        known = {} if name.startswith("_") else {f"sc.{r}": dir(_import(f"{__name__}.{r}")) for r in rooms}
        raise no_name(f"module {__name__!r}", name, __dir__(), known)

    def __dir__() -> list[str]:
        return sorted({*globals(), *_WHERE, *_MODULES})

    class _Package(_Module):
        """Importing a module sets it on its package: not where a function is called like the module it is in."""

        def __setattr__(self, name: str, value: _Any) -> None:
            if not (name in _WHERE and isinstance(value, _Module)):
                super().__setattr__(name, value)

    _sys.modules[__name__].__class__ = _Package
    _copyreg.pickle(_Package, lambda package: (_import, (package.__name__,)))  # type: ignore[arg-type, return-value]
    __all__ = [n for n in __dir__() if not n.startswith("_") and n != "TYPE_CHECKING"]
