"""``sc.c_function``: functions of C as ops, by their addresses: of numbers inside of kernels, of arrays as a step.

Made of ``sc.op``: the meaning of such an op is a call by ctypes, and kernels call the address.
"""

from __future__ import annotations

import ctypes
import inspect
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from symc.codegen.kernel.c_functions import CFunction
from symc.errors import ExecutionError, InputError
from symc.ir.types import as_dtype
from symc.tensors.callsite import at_caller, caller
from symc.tensors.convert import as_tensor
from symc.tensors.tensor import Tensor
from symc.transforms import op_travel
from symc.transforms.c_declarations import c_function_of
from symc.transforms.custom_op import op


def c_function(function: Any, signature: str | None = None, *, name: str | None = None, derivative: Any = None,
               infer: Callable[..., Any] | None = None, arguments: Sequence[str] | None = None,
               vjp: Callable[..., Any] | None = None, jvp: Callable[..., Any] | None = None, cuda: Any = None,
               batch: Callable[..., Any] | None = None, samples: Iterable[Any] | None = None) -> Any:
    """An op of a function of C: of ctypes (with ``argtypes`` and ``restype``), of cffi, or an address with its
    ``signature``, ``"double f(double, int)"``.

    * A function of numbers is elementwise. Kernels call it by its address, without Python; it must be safe to call from
      any thread, and raise nothing. Operands become what it takes; the result is f32 if it takes and gives no double,
      else f64. ``derivative``, ``cuda`` and ``samples`` are as in ``sc.op``.
    * A function of arrays is a step of its own, called without the lock of the interpreter. ``infer(*operands)`` gives
      the dtype and shape of the result, or a list of such pairs, and ``arguments`` says what each parameter in C gets:
      the name of an operand (a pointer to its elements, contiguous and not to be written to), ``"out"`` (``"out0"``,
      ``"out1"``, ... if there are several results), a size such as ``"x.size"``, ``"x.ndim"`` or ``"x.shape[0]"``, or
      an operand of no axes for a number. A function that returns an integer says by 0 that it has succeeded. ``vjp``,
      ``jvp``, ``batch`` and ``samples`` are as in ``sc.op``.
    """
    with at_caller():
        c = c_function_of(function, signature, name)
        if infer is None and arguments is None:
            return _of_numbers(c, derivative, cuda, samples)
        if infer is None or arguments is None:
            raise InputError(f"{c.name}: a function of arrays needs infer= and arguments=")
        run = _of_arrays(c, infer, tuple(arguments))
        return op(run, name=c.name, infer=infer, vjp=vjp, jvp=jvp, batch=batch, samples=samples, cuda=cuda)


# --- numbers ----------------------------------------------------------------------------------------------------------


def _of_numbers(c: CFunction, derivative: Any, cuda: Any, samples: Any) -> Callable[..., Any]:
    if any(t.startswith("*") for t in c.takes):
        raise InputError(f"{c.name} takes arrays", help="give infer= and arguments=: see sc.c_function")
    if not c.gives or c.gives not in "df":
        raise InputError(f"{c.name} must return double or float", help="a function of arrays may return an integer")
    if not c.takes or not set(c.takes) & set("df"):
        raise InputError(f"{c.name} takes no double or float")
    dtype = np.dtype("float64" if "d" in (*c.takes, c.gives) else "float32")
    call, names = c.pointer(), [f"x{k}" for k in range(len(c.takes))]
    shown = [n if t in "df" else f"int({n})" for n, t in zip(names, c.takes, strict=True)]
    scalar = eval(f"lambda {', '.join(names)}: call({', '.join(shown)})", {"call": call, "int": int})
    scalar.c_function = c
    every = np.frompyfunc(scalar, len(names), 1)

    def run(*arrays: Any) -> Any:
        return np.asarray(every(*arrays)).astype(dtype)

    _named(run, c, names)
    made = op(run, name=c.name, derivative=derivative, numba=scalar, cuda=cuda, samples=samples)

    def elementwise(*operands: Any) -> Tensor:
        if len(operands) != len(names):
            raise InputError(f"{c.name} takes {len(names)} operands, {len(operands)} were given", where=[caller()])
        return made(*[_in(as_tensor(o), dtype, c.name) for o in operands])

    elementwise.__name__ = elementwise.__qualname__ = c.name
    elementwise.__module__ = run.__module__
    elementwise.op = made.op  # type: ignore[attr-defined]
    return elementwise


def _in(t: Tensor, dtype: np.dtype, name: str) -> Tensor:
    """An operand in the dtype of the op."""
    if t.dtype.kind == "c":
        raise InputError(f"{name} takes real numbers", values=[t.describe()], where=[caller()])
    return t if t.dtype == dtype else t.astype(dtype)


def _named(run: Any, c: CFunction, names: Sequence[str]) -> None:
    """Description of a function for ``sc.op``: its name, the module that it is of, its operands."""
    file = caller().file
    run.__name__, run.__qualname__, run.__module__ = c.name, c.name, op_travel.home(file) or file
    run.__doc__ = f"The function {c.name} of C."
    run.__signature__ = inspect.Signature(
        [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in names])


# --- arrays -----------------------------------------------------------------------------------------------------------

_ARGUMENT = re.compile(r"(?P<name>\w+?)(?P<what>\.size|\.ndim|\.nbytes|\.shape\[(?P<axis>-?\d+)\])?")


def _of_arrays(c: CFunction, infer: Callable[..., Any], arguments: Sequence[str]) -> Callable[..., Any]:
    names = [p.name for p in inspect.signature(infer).parameters.values() if p.kind is not p.KEYWORD_ONLY]
    _check(c, names, arguments)
    call = c.pointer()

    def run(*arrays: Any) -> Any:
        given = {n: np.ascontiguousarray(a).reshape(np.shape(a)) for n, a in zip(names, arrays, strict=True)}
        results = _results(infer, given)
        places = {**given, **({"out": results[0]} if len(results) == 1 else {}),
                  **{f"out{k}": r for k, r in enumerate(results)}}
        code = call(*[_passed(c, t, a, places) for t, a in zip(c.takes, arguments, strict=True)])
        if c.gives and c.gives not in "df" and code:
            raise ExecutionError(f"{c.name} returned {code}, which is not 0")
        return tuple(results) if _several(infer, given) else results[0]

    _named(run, c, names)
    return run


def _check(c: CFunction, names: Sequence[str], arguments: Sequence[str]) -> None:
    if len(arguments) != len(c.takes):
        raise InputError(f"{c.name} takes {len(c.takes)} arguments, arguments= has {len(arguments)}")
    outs = re.compile(r"out\d*")
    for t, text in zip(c.takes, arguments, strict=True):
        found = _ARGUMENT.fullmatch(text)
        if found is None or found["name"] not in names and not outs.fullmatch(found["name"]):
            raise InputError(f"{c.name}: the argument {text!r} is none of its operands, and no result or size of one",
                             help=f"write {', '.join([*names, 'out'])}, or {names[0] if names else 'out'}.size")
        if found["what"] and (t.startswith("*") or t in "df"):
            raise InputError(f"{c.name}: the size {text!r} is given for a parameter that is no integer")
    if not any(outs.fullmatch(a) for a in arguments):
        raise InputError(f"{c.name}: none of its arguments is a result", help='write "out" where the result goes')


def _several(infer: Callable[..., Any], given: Mapping[str, np.ndarray]) -> bool:
    found = infer(*given.values())
    return isinstance(found, list) or isinstance(found[0], tuple | list)


def _results(infer: Callable[..., Any], given: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Arrays for the results, of zeros."""
    found = infer(*given.values())
    return [np.zeros([operator.index(s) for s in shape], as_dtype(d))
            for d, shape in (found if _several(infer, given) else [found])]


def _passed(c: CFunction, letter: str, text: str, places: Mapping[str, np.ndarray]) -> Any:
    """The array or size that a parameter of C gets."""
    found = _ARGUMENT.fullmatch(text)
    assert found is not None
    if found["name"] not in places:
        raise InputError(f"{c.name}: there is no result {found['name']!r}")
    a = places[found["name"]]
    if found["what"]:
        return a.shape[int(found["axis"])] if found["axis"] else getattr(a, found["what"][1:])
    if letter.startswith("*"):
        if letter != "*?" and np.dtype(letter[1:]) != a.dtype:
            raise InputError(f"{c.name}: {text} is {a.dtype}, the parameter in C points to {np.dtype(letter[1:])}",
                             help=f"convert it: {text}.astype({str(np.dtype(letter[1:]))!r})")
        return a.ctypes.data_as(ctypes.c_void_p)
    if a.ndim or letter not in "df" and a.dtype.kind not in "iub":
        raise InputError(f"{c.name}: {text} has the type {a.dtype}{list(a.shape)}, the parameter in C is a number of "
                         f"{np.dtype(letter)}")
    return a.item()
