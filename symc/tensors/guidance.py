"""Guidance on what to write instead of names of other packages, and of habits, that symc has another way for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from symc.errors import SymcError, nearest
from symc.tensors.callsite import caller


class NoNameError(SymcError, AttributeError):
    """A name that a value, or symc, does not have."""


_ARRAYS = "values are symbolic: f = sc.compile(y, [x]), then f(array) gives the array"
_ON_DEVICE = 'sc.compile(..., device="cuda") runs the whole function there'
_STOP = "sc.stop_gradient(x)"
_TRACK = "every value has derivatives: sc.grad(cost, x); sc.stop_gradient(x) is cut off"
#: Attributes of tensors elsewhere, and what is written here.
OF_TENSORS = {
    "add_": "x = x + y, or state: w = sc.shared(a), updates={w: w + y}", "append": "sc.concatenate([x, y])",
    "apply": "sc.map(fn, x), sc.vmap(fn)(x)", "asnumpy": _ARRAYS, "assign": "updates={w: new} of sc.compile",
    "backward": "g = sc.grad(cost, x), compiled with the rest: sc.compile([cost, g], [x]); define-by-run is symc.dyn",
    "block_until_ready": _ARRAYS, "bmm": "x @ y", "clone": "x itself: values never change", "compute": _ARRAYS,
    "contiguous": "nothing: layouts are the compiler's", "cpu": _ON_DEVICE, "cuda": _ON_DEVICE, "data": _ARRAYS,
    "detach": _STOP, "dimshuffle": "x.transpose(axes), x[:, None], x.squeeze()",
    "double": 'x.astype("float64")',
    "eval": "f = sc.compile(y, [x]), then f(array); or sc.compile(y, [x], mode='reference') for one look",
    "expand": "sc.broadcast_to(x, shape)", "float": 'x.astype("float32")',
    "get_value": "only state has it: w = sc.shared(array); w.get_value()",
    "grad": "g = sc.grad(cost, x): a value like any other", "half": 'x.astype("float16")',
    "index_put_": "x.at[index].set(v)", "int": 'x.astype("int32")', "long": 'x.astype("int64")',
    "masked_fill": "sc.where(mask, value, x)", "mm": "x @ y", "ndimension": "x.ndim", "norm": "sc.linalg.norm(x)",
    "numpy": _ARRAYS, "owner": "f.dump() shows the graph; sc.compile(y).explain(y) what became of a value",
    "permute": "x.transpose(axes)", "requires_grad": _TRACK, "requires_grad_": _TRACK, "run": _ARRAYS,
    "tag": "test values: with sc.config(shadow=True): ...", "to": f"x.astype(dtype); {_ON_DEVICE}",
    "unsqueeze": "sc.expand_dims(x, axis)", "values": _ARRAYS, "view": "x.reshape(shape); x.astype(dtype)",
    "zero_grad": "sc.grad gives the gradient of a call; nothing is accumulated between calls",
}  # fmt: skip
#: Names of other packages' modules, and what symc calls them.
OF_SYMC = {
    "Function": "f = sc.compile(outputs, inputs)", "Linear": "sc.nn.dense(P, x, units)",
    "Lop": "sc.vjp(outputs, wrt, cotangents)", "MX": "sc.vector(name, shape=(n,)), sc.matrix(name)",
    "Module": "sc.Params, sc.nn", "PRNGKey": "sc.random.key(seed)",
    "Parameter": "sc.shared(array, name), sc.Params", "Rop": "sc.jvp(outputs, wrt, tangents)",
    "SX": "sc.vector(name, shape=(n,)), sc.matrix(name)",
    "Session": "f = sc.compile(outputs, inputs); f(arrays)", "Symbol": "sc.scalar(name)",
    "cat": "sc.concatenate([x, y])", "clamp": "sc.clip(x, low, high)", "const": "sc.Constant(1)",
    "constant": "sc.asarray(array), sc.Constant(1)", "debugprint": "print(f), f.dump()",
    "device_put": "sc.device_array(a), or compile for the device", "dmatrix": "sc.matrix(name)",
    "dscalar": "sc.scalar(name)", "dvector": "sc.vector(name)", "fmatrix": 'sc.matrix(name, dtype="float32")',
    "for_loop": "sc.scan, sc.fori_loop", "from_numpy": "sc.asarray(array), or sc.shared(array, name) for state",
    "fscalar": 'sc.scalar(name, dtype="float32")',
    "function": "f = sc.compile(outputs, inputs, updates=..., givens=...)",
    "fvector": 'sc.vector(name, dtype="float32")', "gather": "x[index], sc.take_along_axis(x, index, axis)",
    "gradients": "sc.grad(cost, wrt)", "horzcat": "sc.concatenate([x, y], axis=1)",
    "ifelse": "sc.cond(pred, true_fn, false_fn)", "imatrix": 'sc.matrix(name, dtype="int32")',
    "inverse": "sc.linalg.inv(x)", "iscalar": 'sc.scalar(name, dtype="int32")',
    "ivector": 'sc.vector(name, dtype="int32")',
    "lambdify": "sc.compile(y, [x])", "lax": "sc.scan, sc.cond, sc.while_loop",
    "lscalar": 'sc.scalar(name, dtype="int64")', "lvector": 'sc.vector(name, dtype="int64")',
    "make_jaxpr": "sc.compile(...).dump()", "manual_seed": "sc.random.key(seed)", "mean_squared_error": "sc.nn.mse",
    "mse_loss": "sc.nn.mse", "mtimes": "x @ y", "mv": "x @ y", "no_grad": _STOP,
    "numpy": "NumPy's functions are sc.*: sc.sum, sc.linalg.inv, sc.fft.fft", "optimizer": "sc.optim",
    "placeholder": "sc.input(name, dtype, shape)", "pmap": "symc.dist", "pp": "print(f), f.dump()",
    "printing": "print(f), f.dump(), f.to_html(path)", "rand": "sc.random.uniform(sc.random.key(seed), shape)",
    "randn": "sc.random.normal(sc.random.key(seed), shape)", "rsqrt": "1 / sc.sqrt(x)",
    "scatter": "x.at[index].set(v)", "seed": "sc.random.key(seed)",
    "shuffle": "sc.random.permutation(key, x)", "sumsqr": "sc.sum(x**2)", "symbol": "sc.input(name, dtype, shape)",
    "symbols": "sc.scalar(name)",
    "tensor": "sc.input(name, dtype, shape), sc.asarray(numbers); or import symc.compat.theano as theano",
    "value": "sc.shared(array, name)", "vertcat": "sc.concatenate([x, y])", "while_": "sc.while_loop(cond, body, init)",
}  # fmt: skip


def no_name(what: str, name: str, known: Iterable[str], rooms: Mapping[str, Iterable[str]] | None = None,
            ) -> AttributeError:
    """The error for a name that is not there: what to write instead, the room that has it, or the nearest name.

    ``rooms``: for a module, names of others by what these are called; none for a tensor.
    """
    if name.startswith("_"):
        return AttributeError(f"{what} has no attribute {name!r}")
    table = OF_TENSORS if rooms is None else OF_TENSORS | OF_SYMC
    near = nearest(name, [k for k in known if not k.startswith("_")], 0.75)
    there = [f"{room}.{found}" for room, names in (rooms or {}).items() if (found := nearest(name, names, 1.0))]
    hint = table.get(name) or (f"it is {' or '.join(there)}" if there else f"did you mean {near!r}?" if near else None)
    if hint is None:
        return AttributeError(f"{what} has no attribute {name!r}")
    return NoNameError(f"{what} has no attribute {name!r}", where=[caller()], help=hint)


class EndlessError(SymcError, RecursionError):
    """A function that calls itself while the graph is built, which has no end."""


def endless(name: str, where: Any) -> EndlessError:
    """The error for a recursion through public functions."""
    return EndlessError(
        f"{name}: a function calls itself without end, or deeper than Python's limit of recursion: while a graph is "
        "built there are no numbers to end the recursion, and every branch is traced", where=[where],
        help="a loop: sc.while_loop(cond, body, init) while a condition holds, sc.scan or sc.fori_loop so many times; "
             "recursion on a Python number (def f(x, n)) is unrolled; trees of data are symc.fold")
