"""CUDA code that a user gives for an op of their own (``sc.op(cuda=...)``): statements for one element, or a kernel.

It is compiled as it is, in a translation unit of its own, and launched as any kernel: in its place in the plan, on its
lane, with operands and results where the plan has them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symc.codegen.cuda.prelude import END, PRELUDE
from symc.errors import InputError
from symc.ir.dim import Size, product
from symc.ir.record import dataclass
from symc.ir.types import DTYPE_NAMES
from symc.ir.value import Value

Number = Callable[[Size], int]
#: Threads of a block of an elementwise kernel.
BLOCK = 256


@dataclass(frozen=True)
class CudaKernel:
    """A kernel in CUDA C++ for an op: ``sc.op(infer=..., cuda=sc.CudaKernel(source, "name", grid))``.

    ``source``: text with ``extern "C" __global__ void name(...)``, whose parameters are the addresses of all operands,
    then of all results (contiguous, at multiples of 16 bytes), then what ``numbers`` gives: ints as ``long long``,
    floats as ``double``. ``grid``, ``numbers``, and ``block`` and ``shared`` where they are no ints, are called with
    every operand and result, which have a ``shape`` and a ``dtype``, and then know all sizes: ``grid`` gives how many
    blocks there are (an int, or up to three), ``block`` how many threads a block has (a multiple of 32), ``shared``
    how many bytes of dynamic shared memory.
    """

    source: str
    name: str
    grid: Callable[..., Any]
    block: Any = BLOCK
    shared: Any = 0
    numbers: Callable[..., Sequence[Any]] | None = None


@dataclass(frozen=True)
class Described:
    """An array as the functions of a CudaKernel see it."""

    shape: tuple[int, ...]
    dtype: np.dtype


@dataclass(frozen=True)
class UserLaunch:
    """A launch at concrete sizes. ``numbers``: the words of the parameters after the addresses."""

    text: str
    name: str
    grid: tuple[int, int, int]
    block: int
    shared: int
    numbers: tuple[int, ...]


def has_user_kernel(v: Value) -> bool:
    """True if a user gave CUDA code for the op of ``v``."""
    return _given(v) is not None


def _given(v: Value) -> Any:
    custom = v.op.facts.custom
    return None if custom is None else custom.cuda or None


def user_launch(v: Value, number: Number) -> UserLaunch:
    """The launch that computes ``v``. Raises InputError for what cannot be launched."""
    given = _given(v)
    if isinstance(given, CudaKernel):
        return _of_kernel(given, v, number)
    name = f"{v.op.name}_elements"
    n = number(product(v.types[0].shape))
    return UserLaunch(PRELUDE + _elementwise(name, given, v) + END, name, (-(-n // BLOCK), 1, 1), BLOCK, 0, (n,))



def _of_kernel(k: CudaKernel, v: Value, number: Number) -> UserLaunch:
    types = [*(o.type for o in v.operands), *v.types]
    arrays = [Described(tuple(number(s) for s in t.shape), t.dtype) for t in types]  # type: ignore[union-attr]

    def ask(x: Any) -> Any:
        return x(*arrays) if callable(x) else x

    grid, block = ask(k.grid), ask(k.block)
    grid = (grid,) if isinstance(grid, int) else tuple(grid)
    grid = (*grid, 1, 1)[:3]
    if not all(isinstance(n, int | np.integer) and n >= 0 for n in grid):
        raise InputError(f"op {v.op.name}: its grid must be one to three ints, not {grid!r}")
    if not isinstance(block, int) or not 0 < block <= 1024 or block % 32:
        raise InputError(f"op {v.op.name}: a block has a multiple of 32 threads, at most 1024, not {block!r}")
    numbers = tuple(map(_word, ask(k.numbers) if k.numbers is not None else ()))
    return UserLaunch(k.source, k.name, tuple(map(int, grid)), block, int(ask(k.shared)), numbers)  # type: ignore[arg-type]


def _word(x: Any) -> int:
    """A number as the 8 bytes of a parameter."""
    if isinstance(x, float | np.floating):
        return int(np.array(x, np.float64).view(np.int64))
    return int(x)


def _elementwise(name: str, statements: str, v: Value) -> str:
    """A kernel that runs the statements for each element: operands and attributes by their names, the result ``out``.
    """
    own, out = v.op.facts.custom, v.types[0]
    assert own is not None
    dtypes = [DTYPE_NAMES[o.dtype] for o in v.operands]
    arguments = [*(f"const {d} *a{k}" for k, d in enumerate(dtypes)), f"{DTYPE_NAMES[out.dtype]} *o", "i64 n"]
    lines = [f"const {d} {x} = a{k}[i];" for k, (d, x) in enumerate(zip(dtypes, own.names))]
    lines += [f"const auto {key} = {value!r};" for key, value in v.attrs.items() if isinstance(value, int | float)]
    lines += [f"{DTYPE_NAMES[out.dtype]} out;", f"{{ {statements} }}", "o[i] = out;"]
    body = "\n  ".join(lines)
    return (f'extern "C" __global__ void __launch_bounds__({BLOCK}) {name}({", ".join(arguments)}) {{\n'
            f"  const i64 i = i64(blockIdx.x) * {BLOCK} + threadIdx.x;\n  if (i >= n) return;\n  {body}\n}}\n")
