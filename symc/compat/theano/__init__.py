"""``import symc.compat.theano as theano``: programs for Theano, on symc.

``import symc.compat.theano.tensor as T`` and the other modules of Theano are found by their names; after
``symc.compat.theano.install()`` also as ``theano``, ``theano.tensor`` and so on, for programs that are not to be
changed. Everything is made of symc's public functions: derivatives, loops, random numbers and kernels are its own. A
name that is not here is an AttributeError that says what symc has instead. What differs: docs/coming-from-theano.md.
"""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

import symc as sc
from symc.compat.theano import compiling, derivatives, loops, nnet, op, printing
from symc.compat.theano.compiling import function
from symc.compat.theano.functions import FUNCTIONS, as_tensor_variable
from symc.compat.theano.random_streams import MRG_RandomStreams, RandomStreams
from symc.compat.theano.settings import config
from symc.compat.theano.variable import Apply, SharedVariable, TensorType, TensorVariable, lifted, shared, states_in, wrap
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


_TENSOR = {**FUNCTIONS, **{n: derivatives.DERIVATIVES[n] for n in ("grad", "jacobian", "hessian", "Rop", "Lop",
           "verify_grad")}, "nnet": "", "TensorConstant": TensorVariable, "TensorSharedVariable": SharedVariable}  # fmt: skip
_GOF = {"Op": op.Op, "Apply": Apply, "Variable": TensorVariable, "MissingInputError": InputError}
_LOOPS = {n: getattr(loops, n) for n in loops.__all__ if n not in ("TensorVariable", "ifelse")}
_COMPILE = {n: getattr(compiling, n) for n in ("In", "Out", "Mode", "MonitorMode", "NanGuardMode", "DebugMode", "function",
            "UnusedInputError", "get_default_mode")}  # fmt: skip
_BN = {"batch_normalization": nnet.batch_normalization}
_POOL = {"pool_2d": nnet.pool_2d, "max_pool_2d": nnet.max_pool_2d, "max_pool_2d_same_size": None}
_RANDOM = {"RandomStreams": RandomStreams}
_LINEAR = {n: FUNCTIONS[n] for n in ("matrix_inverse", "det", "pinv", "eigh", "svd", "qr", "matrix_power", "matrix_dot",
           "eig", "tensorinv", "diag", "AllocDiag", "norm", "cholesky", "solve", "solve_lower_triangular", "kron", "expm",
           "solve_upper_triangular")}  # fmt: skip
_LINEAR["trace"] = lifted(sc.trace)
#: Theano's modules by their names below ``theano``, with what is in them.
MODULES: dict[str, dict[str, Any]] = {
    "tensor": _TENSOR, "tensor.nnet": nnet.NNET, "tensor.nnet.nnet": nnet.NNET, "tensor.nnet.conv":
    {"conv2d": nnet.conv2d}, "tensor.nnet.bn": _BN, "tensor.basic": _TENSOR, "tensor.elemwise": {}, "tensor.var":
    {"TensorVariable": TensorVariable}, "tensor.signal": {}, "tensor.signal.pool": _POOL, "tensor.signal.downsample":
    _POOL, "tensor.signal.conv": {"conv2d": nnet.signal_conv2d}, "tensor.shared_randomstreams": _RANDOM,
    "tensor.raw_random": {}, "tensor.nlinalg": _LINEAR, "tensor.slinalg": _LINEAR, "tensor.xlogx": {"xlogy0":
    FUNCTIONS["xlogy0"], "xlogx": lambda x: FUNCTIONS["xlogy0"](x, x)}, "tensor.extra_ops": _TENSOR, "tensor.subtensor":
    _TENSOR, "tensor.sharedvar": {"TensorSharedVariable": SharedVariable}, "tensor.type": {"TensorType": TensorType},
    "sandbox": {}, "sandbox.rng_mrg": {"MRG_RandomStreams": MRG_RandomStreams}, "scalar": {"upcast": _upcast},
    "compile": _COMPILE, "compile.mode": _COMPILE, "compile.io": _COMPILE, "compile.debugmode": _COMPILE,
    "compile.nanguardmode": _COMPILE, "compile.ops": {"as_op": op.as_op}, "compile.sharedvalue": {"shared": shared,
    "SharedVariable": SharedVariable}, "compile.function": {"function": function},
    "gof": _GOF, "gof.graph": {**_GOF, "inputs": _inputs}, "gof.op": _GOF, "gradient": derivatives.DERIVATIVES,
    "printing": printing.PRINTING, "ifelse": {"ifelse": loops.ifelse}, "scan_module": _LOOPS, "updates":
    {"OrderedUpdates": loops.OrderedUpdates}, "configparser": {"config": config}, "misc": {},
    "scan_module.scan_utils": {"until": loops.until}, "tensor.sort": _TENSOR, "tensor.opt": {},
}  # fmt: skip
#: Names of ``theano`` itself that are not modules.
NAMES: dict[str, Any] = {
    **{n: v for n, v in _LOOPS.items() if n != "until"}, "map": loops.map_, **_COMPILE, "shared": shared, "config": config, "Param":
    compiling.In, "clone": op.clone, "Op": op.Op, "Apply": Apply, "Variable": TensorVariable, "pp": printing.pp,
    "pprint": printing.pp, "dot": lifted(sc.dot), "grad": derivatives.grad, "Rop": derivatives.Rop, "Lop":
    derivatives.Lop, "subgraph_grad": None, "__version__": "1.0.5+symc", "version": SimpleNamespace(version="1.0.5+symc"),
    "as_op": op.as_op, "SharedVariable": SharedVariable, "OrderedUpdates": loops.OrderedUpdates, "debugprint":
    printing.debugprint, "_asarray": lambda a, dtype=None, order=None: np.asarray(a, dtype), "function": function,
}  # fmt: skip


def _absent(where: str, name: str, names: Any) -> AttributeError:
    hint = f"in symc: {INSTEAD[name]}" if name in INSTEAD else did_you_mean(name, names)
    return AttributeError(f"symc.compat.theano: theano{where and '.'}{where} has no {name!r} here; {hint}")


def _finder(where: str, names: dict[str, Any]) -> Any:
    """What a module does about a name that is not listed: a function of NumPy's, in ``tensor``; else an error."""
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
    made = {"": here}
    for path, names in MODULES.items():
        module = ModuleType(f"{__name__}.{path}", f"``theano.{path}``, on symc.")
        module.__dict__.update({k: v for k, v in names.items() if v is not None}, __path__=[],
                               __getattr__=_finder(path, names))
        made[path] = sys.modules[f"{__name__}.{path}"] = module
    for path, module in made.items():
        if path:
            parent, _, last = path.rpartition(".")
            setattr(made[parent], last, module)
    here.__dict__.update({k: v for k, v in NAMES.items() if v is not None})
    return made


_MADE = _make()
#: Methods of variables, which are functions of ``tensor`` with the variable first.
METHODS = (
    "sum prod mean max min any all argmax argmin var std ptp norm flatten dimshuffle reshape transpose astype copy clip "
    "round sort argsort repeat cumsum cumprod ravel diagonal trace take nonzero nonzero_values dot swapaxes squeeze fill "
    "conj zeros_like ones_like choose compress searchsorted"
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
