"""``import symc.compat.theano as theano``: programs for Theano, on symc.

``import symc.compat.theano.tensor as T`` and the other modules of Theano are found by their names; after
``symc.compat.theano.install()`` also as ``theano``, ``theano.tensor`` and so on, for programs that are not to be
changed. Everything is made of symc's public functions: derivatives, loops, random numbers and kernels are its own. A
name that is not here is an AttributeError that says what symc has instead. What differs: docs/coming-from-theano.md.
"""

# mypy: disable-error-code="attr-defined"
from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

import symc as sc
from symc.compat.theano import compiling, derivatives, loops, nnet, op, pretty
from symc.compat.theano.compiling import function
from symc.compat.theano.functions import FUNCTIONS, as_tensor_variable
from symc.compat.theano.random_streams import MRG_RandomStreams, RandomStreams
from symc.compat.theano.settings import config
from symc.compat.theano.variable import (
    Apply,
    SharedVariable,
    TensorType,
    TensorVariable,
    lifted,
    shared,
    wrap,
)
from symc.errors import InputError, did_you_mean
from symc.ir.traverse import postorder

#: Names of Theano's that have no counterpart under these names, and what to use.
INSTEAD = {
    "sparse": "sc.sparse: sc.sparse.csr(...), sc.sparse.input(...)", "gpuarray": "sc.compile(..., device='cuda')",
    "images2neibs": "sc.lib.stride_tricks.sliding_window_view, or sc.conv", "CTC": "sc.nn.ctc",
    "function_dump": "f.save(path)", "PdbBreakpoint": "sc.debug.breakpoint", "abstract_conv": "sc.conv",
    "batch_normalization_train": "T.nnet.bn.batch_normalization with x.mean and x.std", "cuda":
    "sc.compile(..., device='cuda')", "h_softmax": "sc.softmax", "rfft": "sc.fft.rfft", "fft": "sc.fft",
    "pkl_utils": "pickle, sc.save_params", "optdb": "symc.opt: rule, graph_pass", "opt": "symc.opt: rule, graph_pass",
    "EquilibriumOptimizer": "symc.opt: rule, graph_pass", "scalar_op": "sc.op",
}  # fmt: skip


def _inputs(variables: Any, blockers: Any = None) -> list[Any]:
    """The leaves that variables are made of."""
    return [wrap(sc.Tensor(v)) for v in postorder([x.tensor.value for x in variables])
            if not v.operands and v.op.name in ("input", "constant")]


def _upcast(*dtypes: Any) -> str:
    return np.result_type(*dtypes).name


def _picked(source: Any, names: str) -> dict[str, Any]:
    get = source.get if isinstance(source, dict) else lambda n: getattr(source, n)
    return {n: get(n) for n in names.split()}


_TENSOR = {**FUNCTIONS, **_picked(derivatives, "grad jacobian hessian Rop Lop verify_grad"),
           "TensorConstant": TensorVariable, "TensorSharedVariable": SharedVariable}
_GOF = {"Op": op.Op, "Apply": Apply, "Variable": TensorVariable, "MissingInputError": InputError}
_LOOPS = _picked(loops, "OrderedUpdates foldl foldr reduce scan until") | {"map": loops.map_}
_COMPILE = _picked(compiling, "In Out Mode MonitorMode NanGuardMode DebugMode function UnusedInputError "
                              "get_default_mode") | {"OpFromGraph": op.OpFromGraph}
_POOL = _picked(nnet, "pool_2d max_pool_2d")
_LINEAR = {"trace": lifted(sc.trace), **_picked(
    FUNCTIONS, "matrix_inverse det pinv eigh eig svd qr matrix_power matrix_dot tensorinv diag norm cholesky solve "
               "solve_lower_triangular solve_upper_triangular kron expm")}
#: Theano's modules by their names below ``theano``, with what is in them.
MODULES: dict[str, dict[str, Any]] = {
    **dict.fromkeys(["tensor", "tensor.basic", "tensor.extra_ops", "tensor.subtensor"], _TENSOR),
    **dict.fromkeys(["tensor.nnet", "tensor.nnet.nnet"], nnet.NNET),
    **dict.fromkeys(["tensor.signal.pool", "tensor.signal.downsample"], _POOL),
    **dict.fromkeys(["tensor.nlinalg", "tensor.slinalg"], _LINEAR),
    **dict.fromkeys(["compile", "compile.mode", "compile.io", "compile.builders", "compile.debugmode",
                    "compile.nanguardmode"], _COMPILE),
    **{n: {} for n in "tensor.signal tensor.elemwise tensor.raw_random tensor.opt sandbox misc".split()},
    **dict.fromkeys(["gof", "gof.op"], _GOF),
    "tensor.nnet.conv": _picked(nnet, "conv2d"), "tensor.nnet.bn": _picked(nnet, "batch_normalization"),
    "tensor.var": {"TensorVariable": TensorVariable}, "tensor.type": {"TensorType": TensorType},
    "tensor.signal.conv": {"conv2d": nnet.signal_conv2d}, "tensor.shared_randomstreams": {"RandomStreams":
    RandomStreams}, "tensor.sharedvar": {"TensorSharedVariable": SharedVariable},
    "tensor.xlogx": {"xlogy0": FUNCTIONS["xlogy0"], "xlogx": lambda x: FUNCTIONS["xlogy0"](x, x)},
    "sandbox.rng_mrg": {"MRG_RandomStreams": MRG_RandomStreams}, "scalar": {"upcast": _upcast},
    "compile.ops": {"as_op": op.as_op}, "compile.sharedvalue": {"shared": shared, "SharedVariable": SharedVariable},
    "gof.graph": {**_GOF, "inputs": _inputs},
    "gradient": derivatives.DERIVATIVES, "printing": pretty.PRINTING, "ifelse": {"ifelse": loops.ifelse},
    "scan_module": _LOOPS, "scan_module.scan_utils": {"until": loops.until}, "configparser": {"config": config},
    "updates": {"OrderedUpdates": loops.OrderedUpdates},
}  # fmt: skip
#: Names of ``theano`` itself that are not modules.
NAMES: dict[str, Any] = {
    **_LOOPS, **_COMPILE, **_GOF, "shared": shared, "config": config, "Param": compiling.In, "clone": op.clone,
    "SharedVariable": SharedVariable, "as_op": op.as_op, "dot": lifted(sc.dot), "pprint": pretty.pp,
    **_picked(derivatives, "grad Rop Lop"), **_picked(pretty, "pp debugprint"), "__version__": "1.0.5+symc",
    "version": SimpleNamespace(version="1.0.5+symc"),
    "_asarray": lambda a, dtype=None, order=None: np.asarray(a, dtype),
}  # fmt: skip


def _absent(where: str, name: str, names: Any) -> AttributeError:
    hint = f"in symc: {INSTEAD[name]}" if name in INSTEAD else did_you_mean(name, names)
    return AttributeError(f"symc.compat.theano: theano{where and '.'}{where} has no {name!r} here; {hint}")


def _finder(where: str, names: dict[str, Any]) -> Any:
    """Finds names that are not listed: a function of NumPy's, in ``tensor``; else an error."""
    def find(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        fn = getattr(sc, name, None) if names is _TENSOR and name in sc.__all__ else None
        if name not in INSTEAD and callable(fn) and not isinstance(fn, type):
            return lifted(fn)
        if name not in INSTEAD and names is _TENSOR and hasattr(sc, name) and isinstance(fn, float):
            return fn
        raise _absent(where, name, names)
    return find


def _make() -> dict[str, ModuleType]:
    here = sys.modules[__name__]
    here.__dict__.update(NAMES)
    made = {"": here}
    for path, names in MODULES.items():
        module = ModuleType(f"{__name__}.{path}", f"``theano.{path}``, on symc.")
        module.__dict__.update(names, __path__=[],
                               __getattr__=_finder(path, names))
        made[path] = sys.modules[f"{__name__}.{path}"] = module
    for path, module in made.items():
        if path:
            parent, _, last = path.rpartition(".")
            made[parent].__dict__.setdefault(last, module)  # T.var is the function
    return made


_MADE = _make()
#: Methods of variables, which are functions of ``tensor`` with the variable first.
METHODS = (
    "sum prod mean max min any all argmax argmin var std ptp norm flatten dimshuffle reshape transpose astype copy "
    "clip round sort argsort repeat cumsum cumprod ravel diagonal trace take nonzero nonzero_values dot swapaxes "
    "squeeze fill conj zeros_like ones_like choose compress searchsorted"
).split()
_DIFFERENT = {"astype": "cast", "copy": "tensor_copy"}
for _name in METHODS:
    setattr(TensorVariable, _name, getattr(_MADE["tensor"], _DIFFERENT.get(_name, _name)))
for _name, _method in {"T": "transpose", "real": "real", "imag": "imag"}.items():
    setattr(TensorVariable, _name, property(getattr(_MADE["tensor"], _method)))


def install() -> None:
    """Let ``import theano`` and its modules find those of this package, in this process."""
    for path, module in _MADE.items():
        sys.modules[f"theano.{path}" if path else "theano"] = module


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise _absent("", name, [*NAMES, *MODULES])


__all__ = ["as_tensor_variable", "config", "function", "install", "shared"]
