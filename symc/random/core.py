"""Arguments that every distribution needs: a key, a shape, a dtype, parameters in that shape and dtype, and bits. No
formulas.

Errors about arguments are made here, so that all distributions complain alike.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from symc.errors import DTypeError, InputError, ShapeError
from symc.ir.dim import Size, known_equal
from symc.ir.op import lookup, splat
from symc.ir.ops.ensure import ensured
from symc.ir.ops.random import philox64, random_bits
from symc.ir.record import dataclass
from symc.ir.text import splat_of
from symc.ir.types import DTYPE_NAMES, DTYPES, as_dtype
from symc.ir.value import Value
from symc.numpy_api.promotion import broadcast_shape, common_dtype, stretch
from symc.tensors.convert import as_tensor, convert, default_float
from symc.tensors.public import located
from symc.tensors.sizes import as_size, entries
from symc.tensors.tensor import Tensor

U64, U32, I64, F64 = DTYPES["u64"], DTYPES["u32"], DTYPES["i64"], DTYPES["f64"]
F = TypeVar("F", bound=Callable[..., Any])

#: Names of arguments that NumPy or JAX use for the same thing.
ALIASES = {"size": "shape", "minval": "low", "maxval": "high"}

#: All distributions by name: functions whose first argument is a key.
DISTRIBUTIONS: dict[str, Callable[..., Any]] = {}


def distribution(fn: F) -> F:
    """A public function of a key, which also takes NumPy's and JAX's names for its arguments."""

    signature = inspect.signature(fn)
    names = list(signature.parameters)
    shown = f"{fn.__name__}({', '.join(str(p).replace(': Any', '') for p in signature.parameters.values())})"

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        for alias in [a for a in ALIASES if a in kwargs]:
            if ALIASES[alias] in names[: len(args)] or ALIASES[alias] in kwargs:
                raise InputError(f"{fn.__name__}: {alias} and {ALIASES[alias]} are the same argument")
            kwargs[ALIASES[alias]] = kwargs.pop(alias)
        try:
            signature.bind(*args, **kwargs)
        except TypeError as e:
            raise InputError(f"{fn.__name__}: {e}",
                             help=f"sc.random.{shown}; methods of a Generator take no key") from None
        return fn(*args, **kwargs)

    DISTRIBUTIONS[fn.__name__] = public = located(call)
    return public  # type: ignore[return-value]


# --- keys -------------------------------------------------------------------------------------------------------------


def as_key(item: Any, name: str) -> Value:
    """The value of a key, u64[2]. Raises InputError for anything else."""
    if isinstance(item, Tensor) or isinstance(item, np.ndarray) and item.dtype == U64:
        v = as_tensor(item).value
        if v.dtype == U64 and v.ndim == 1 and known_equal(v.shape[0], 2) is not False:
            return ensured(v, (2,))
        several = v.dtype == U64 and v.ndim > 1 and v.shape[-1] == 2
        raise InputError(
            f"{name}: {'several keys were given' if several else 'this is no key: a key is u64[2]'}",
            values=[as_tensor(item).describe("the first argument")],
            help="take one, keys[i], or draw with all of them: sc.vmap" if several else MAKE_KEY,
        )
    raise InputError(f"{name}: the first argument is a key, not {_brief(item)}", help=MAKE_KEY)


MAKE_KEY = "make one: key = sc.random.key(seed); more: sc.random.split(key, n); or use a sc.random.Generator(seed)"


# --- shapes and dtypes ------------------------------------------------------------------------------------------------


def sizes(shape: Any, name: str) -> tuple[Size, ...]:
    """A shape as users give it: an int, a size, or a tuple or list of them."""
    try:
        out = tuple(as_size(s) for s in entries(shape))
    except ShapeError:
        raise ShapeError(f"{name}: the shape is an int, a size or a tuple of them, not {_brief(shape)}",
                         help="loc, scale, low and high are given by name") from None  # fmt: skip
    for s in out:
        if isinstance(s, int) and s < 0:
            raise ShapeError(f"{name}: the size {s} is negative")
    return out


def _brief(item: Any) -> str:
    text = repr(item)
    return text if len(text) <= 60 else text[:57] + "..."


def float_dtype(dtype: Any, name: str) -> np.dtype:
    """A dtype of floats; the default float for None."""
    d = default_float() if dtype is None else _dtype(dtype, name)
    if d.kind != "f":
        raise DTypeError(f"{name} gives floats, not {DTYPE_NAMES[d]}",
                         help="dtype is 'float32', 'float64', 'float16' or 'bfloat16'")
    return d


def _dtype(dtype: Any, name: str) -> np.dtype:
    if isinstance(dtype, int | float | list | tuple | Tensor):
        raise DTypeError(f"{name}: {_brief(dtype)} is given where the dtype belongs",
                         help="loc, scale, low and high are given by name")  # fmt: skip
    return as_dtype(dtype)


def integer_dtype(dtype: Any, name: str) -> np.dtype:
    """A dtype of integers; int64 for None."""
    d = I64 if dtype is None else _dtype(dtype, name)
    if d.kind not in "iu":
        raise DTypeError(f"{name} gives integers, not {DTYPE_NAMES[d]}", help="dtype is 'int64', 'int32', 'uint8', ...")
    return d


# --- parameters -------------------------------------------------------------------------------------------------------

#: What a parameter must be: a test of numbers, and its words.
RULES: dict[str, tuple[Callable[[np.ndarray], np.ndarray], str]] = {
    "any": (lambda x: ~np.isnan(x), "must be a number"),
    "positive": (lambda x: x > 0, "must be positive"),
    "nonnegative": (lambda x: x >= 0, "must not be negative"),
    "probability": (lambda x: (x >= 0) & (x <= 1), "must be between 0 and 1"),
    "chance": (lambda x: (x > 0) & (x <= 1), "must be above 0 and at most 1"),
    "count": (lambda x: (x >= 0) & (np.floor(x) == x), "must be a whole number that is not negative"),
}


@dataclass(frozen=True)
class Draw:
    """One call of a distribution, checked: its key, the shape and dtype of the result, and parameters in them."""

    key: Value
    shape: tuple[Size, ...]
    dtype: np.dtype
    parameters: tuple[Value, ...]

    def bits(self, dtype: np.dtype = U64) -> Value:
        """Fresh bits, one number an element."""
        return random_bits(self.key, shape=self.shape, dtype=dtype)

    def unit(self, op: str, dtype: np.dtype | None = None) -> Value:
        """Numbers of ``unit_uniform``, ``unit_normal`` or ``unit_exponential``, in the dtype of the result."""
        d = self.dtype if dtype is None else dtype
        return convert(lookup(op)(self.bits(U64 if d == F64 else U32)), d)


def more(bits: Value, k: int) -> Value:
    """64 further bits for every element: number ``k`` of the streams that belong to its bits."""
    return philox64(bits, splat(_FURTHER, bits.type), splat(k, bits.type))


_FURTHER = 0xA0761D6478BD642F  # no counter that a rejection sampler reads (random_reference.OWN)


def prepare(name: str, key: Any, shape: Any, dtype: Any, inside: np.dtype | None = None,
            **parameters: tuple[Any, str]) -> Draw:
    """Check a call. A parameter is what was given, and a key of RULES; it is computed with in ``inside``, or else in
    the dtype of the result, which is that of the parameters if it is not given."""
    owner = as_key(key, name)
    asked = None if shape is None else sizes(shape, name)
    tensors = [_parameter(name, p, item, rule) for p, (item, rule) in parameters.items()]
    if dtype is None and tensors:
        d = common_dtype([*tensors, as_tensor(1.0)])
    else:
        d = float_dtype(dtype, name)
    out = broadcast_shape(tensors, name) if tensors else ()
    if asked is not None:
        _check_fits(name, asked, out, list(parameters), tensors)
        out = asked
    return Draw(owner, out, d, tuple(stretch(convert(t.value, inside or d), out) for t in tensors))


def _parameter(name: str, label: str, item: Any, rule: str) -> Tensor:
    try:
        t = as_tensor(item)
    except DTypeError as e:
        raise DTypeError(f"{name}: {label} is {item!r:.40}", help=e.help or "give a number or an array") from None
    if t.dtype.kind not in "iuf":
        raise DTypeError(f"{name}: {label} is {DTYPE_NAMES[t.dtype]}, not a real number", values=[t.describe(label)])
    data = known_data(t)
    if data is not None:
        test, words = RULES[rule]
        bad = np.asarray(data)[~test(np.asarray(data, np.float64))]
        if bad.size:
            raise InputError(f"{name}: {label} {words}, and {bad.ravel()[0]} is given")
    return t


def ordered(name: str, strict: bool = False, **items: Any) -> None:
    """Parameters that are constants must increase, in the order given. Raises InputError."""
    known = [(label, known_data(as_tensor(item))) for label, item in items.items()]
    for (a, x), (b, y) in itertools.pairwise(known):
        if x is not None and y is not None and not np.all(x < y if strict else x <= y):
            raise InputError(f"{name}: {a} must be {'below' if strict else 'at most'} {b}")


def known_data(t: Tensor) -> np.ndarray | None:
    """The numbers of a constant, or None."""
    data = t.value.data
    return splat_of(t.value) if data is None else data


def _check_fits(name: str, asked: tuple[Size, ...], own: tuple[Size, ...], labels: Sequence[str],
                tensors: Sequence[Tensor]) -> None:
    """The parameters must broadcast into the shape that was asked for."""
    fits = len(own) <= len(asked) and all(
        o == 1 or known_equal(o, a) is not False for o, a in zip(own[::-1], asked[::-1], strict=False))
    if not fits:
        rows = [t.describe(label) for label, t in zip(labels, tensors, strict=True)]
        raise ShapeError(f"{name}: parameters of shape ({', '.join(map(str, own))}) do not fit the shape "
                         f"({', '.join(map(str, asked))})", values=rows,
                         help="the shape is that of the result, not of draws for each parameter")  # fmt: skip


def location_scale(x: Value, loc: Any = None, scale: Any = None) -> Tensor:
    """loc + scale * x, where numbers that change nothing are left out."""
    if scale is not None:
        x = _combine("mul", x, scale, 1)
    return Tensor(x if loc is None else _combine("add", x, loc, 0))


def _combine(op: str, x: Value, item: Value, neutral: float) -> Value:
    number = splat_of(item)
    return x if number is not None and number == neutral else lookup(op)(x, item)
