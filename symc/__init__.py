"""symc: a static-declaration symbolic compiler.

NumPy-like expressions become one graph, are differentiated symbolically, optimized, given memory by a plan, and run as
native code. ``import symc as sc``; then ``sc.input``, ``sc.compile``, ``sc.grad``, and NumPy's functions by name.
"""

from symc import debug, ir, linalg, numpy_api, random, special
from symc.assumptions import assume
from symc.autodiff import (
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
from symc.checkpoint import checkpoint
from symc.control import (
    associative_scan,
    cond,
    foldl,
    foldr,
    fori_loop,
    reduce,
    scan,
    switch,
    while_loop,
)
from symc.control import (
    map_ as map,
)
from symc.custom_op import op
from symc.debugging.bisect import bisect
from symc.deferred import Deferred
from symc.errors import (
    AssertError,
    CheckError,
    DTypeError,
    ExecutionError,
    GradientError,
    IndexingError,
    InputError,
    InternalError,
    LinAlgError,
    MemoryBudgetError,
    NonFiniteError,
    ParseError,
    PipelineError,
    PlanError,
    ShapeError,
    SymbolicValueError,
    SymcError,
)
from symc.function import CompiledFunction, compile
from symc.function_op import function_op
from symc.gradcheck import verify_grad
from symc.implicit import custom_fixed_point, custom_root
from symc.inputs import Constant, Variable, input, matrix, scalar, tensor3, tensor4, vector
from symc.ir import ops
from symc.ir.parse import parse
from symc.jacobians import hessian, jacobian
from symc.jit import jit
from symc.lint import lint
from symc.numpy_api import *  # noqa: F403 - NumPy's functions, constants and dtypes under their own names
from symc.numpy_api import bool
from symc.numpy_api.convert import default_float, set_default_float
from symc.op_check import check_op
from symc.save import load
from symc.special import digamma, erf, erfc, erfinv, gammaln
from symc.state import SharedVariable, shared
from symc.taps import taps
from symc.tensor import Tensor
from symc.vmap import vmap

from symc.debugging.public import diff  # isort: skip - NumPy's diff, and that of functions

__version__ = "0.1.0"
