"""symc: a static-declaration symbolic compiler.

NumPy-like expressions become one graph, are differentiated symbolically, optimized, given memory by a plan, and run as
native code. ``import symc as sc``; then ``sc.input``, ``sc.compile``, ``sc.grad``, and NumPy's functions by their names.
"""

from pathlib import Path as _Path

if all((_Path(__file__).parent / "numpy_api" / f"{_n}.py").exists() for _n in ("linear", "sorting", "statistics", "updates")):
    from symc import ir, numpy_api
    from symc.deferred import Deferred
    from symc.errors import (
        DTypeError,
        ExecutionError,
        GradientError,
        IndexingError,
        InputError,
        InternalError,
        NonFiniteError,
        ParseError,
        PipelineError,
        PlanError,
        ShapeError,
        SymbolicValueError,
        SymcError,
    )
    from symc.function import CompiledFunction, compile
    from symc.inputs import Constant, Variable, input, matrix, scalar, tensor3, tensor4, vector
    from symc.ir import ops
    from symc.ir.parse import parse
    from symc.jit import jit
    from symc.numpy_api import *  # noqa: F403 - NumPy's functions, constants and dtypes under their own names
    from symc.numpy_api import bool  # noqa: A004
    from symc.numpy_api.convert import default_float, set_default_float
    from symc.save import load
    from symc.state import SharedVariable, shared
    from symc.tensor import Tensor

__version__ = "0.1.0"
