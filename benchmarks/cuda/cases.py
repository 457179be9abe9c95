"""Cases measured on a GPU: formulas that every peer computes in its own words, at full and at tiny sizes.

A formula is written against a small vocabulary, ``m``, that ``peers.py`` gives for each peer; training steps are those
of the workloads on the CPU. Tiny sizes are for checks: of the numbers, on a GPU, and that all of it runs, without one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.workloads import layernorm, mlp, transformer

Array = np.ndarray
Sizes = Mapping[str, int]
EPSILON = 1e-5


@dataclass(frozen=True)
class Case:
    """``make``: the arrays for some sizes. ``formula``: what is computed of them; ``backward``: its gradients instead,
    for a gradient of the result, which is the last array. ``step``: the name of a builder in ``peers.py`` instead.

    ``moved``, ``flops``: what must at least cross the memory, and be computed, in one call: what the result is compared
    with; ``ceiling``: by which dtype's product. ``precision``: of products.
    """

    name: str
    full: Sizes
    tiny: Sizes
    make: Callable[[Sizes], list[Array]]
    formula: Callable[..., Any] | None = None
    step: str = ""
    backward: bool = False
    moved: Callable[[Sizes], float] | None = None
    flops: Callable[[Sizes], float] | None = None
    precision: str = "highest"
    ceiling: str = "float32"
    tolerance: float = 1e-5
    reference: Callable[..., Sequence[Array]] | None = None
    skip: tuple[str, ...] = field(default=())


CASES: dict[str, Case] = {}


def add(name: str, full: Sizes, tiny: Sizes, make: Callable[[Sizes], list[Array]], **rest: Any) -> None:
    CASES[name] = Case(name, full, tiny, make, **rest)


def random(shape: Sequence[int], dtype: str = "float32", seed: int = 0, scale: float = 1.0) -> Array:
    """Random numbers; large arrays repeat a block of 16 million, which no cache holds."""
    count = math.prod(shape)
    block = np.random.default_rng(seed).standard_normal(min(count, 2**24), np.float32) * np.float32(scale)
    return np.resize(block.astype(dtype), count).reshape(shape)


def several(number: int, dtype: str = "float32") -> Callable[[Sizes], list[Array]]:
    """Arrays of all the sizes, in order."""
    return lambda s: [random(tuple(s.values()), dtype, k) for k in range(number)]


# --- elementwise ------------------------------------------------------------------------------------------------------


def one(m: Any, x: Any, y: Any) -> Any:
    return x * y + x


def chain(m: Any, x: Any, y: Any) -> Any:
    """Ten operations, none of them slow."""
    z = x * y + x
    z = m.maximum(z, y) - 0.5 * x
    return m.sqrt(m.abs(z * x + y) + 1.0) * z


for _dtype in ("float32", "float16"):
    for _name, _formula in (("elementwise", one), ("chain", chain)):
        add(f"{_name} {_dtype}", {"n": 2**28}, {"n": 5003}, several(2, _dtype), formula=_formula,
            moved=lambda s, d=_dtype: 3.0 * s["n"] * np.dtype(d).itemsize,
            tolerance=2e-2 if _dtype == "float16" else 1e-5)

# --- rows -------------------------------------------------------------------------------------------------------------


def softmax(m: Any, x: Any) -> Any:
    return m.softmax(x)


def normalized(m: Any, x: Any, scale: Any, offset: Any) -> Any:
    d = x - m.mean(x)
    return d / m.sqrt(m.mean(d * d) + EPSILON) * scale + offset


def rows_of(dtype: str, extra: int = 0) -> Callable[[Sizes], list[Array]]:
    """Rows, two arrays as long as a row, and ``extra`` more arrays of rows."""
    def make(s: Sizes) -> list[Array]:
        shape = s["rows"], s["columns"]
        return [random(shape, dtype), random(shape[1:], dtype, 1), random(shape[1:], dtype, 2),
                *[random(shape, dtype, 3 + k) for k in range(extra)]]
    return make


for _columns in (128, 256, 1024, 4096, 8192, 32768):
    add(f"softmax {_columns}", {"rows": 2**27 // _columns, "columns": _columns}, {"rows": 3, "columns": _columns},
        several(1), formula=softmax, moved=lambda s: 8.0 * s["rows"] * s["columns"])
for _dtype, _limit in (("float32", 2e-5), ("float16", 3e-2)):
    add(f"layernorm {_dtype}", {"rows": 32768, "columns": 4096}, {"rows": 5, "columns": 1000}, rows_of(_dtype),
        formula=normalized, moved=lambda s, d=_dtype: 2.0 * s["rows"] * s["columns"] * np.dtype(d).itemsize,
        tolerance=_limit)
add("layernorm gradients", {"rows": 32768, "columns": 4096}, {"rows": 5, "columns": 1000}, rows_of("float32", 1),
    formula=normalized, backward=True, moved=lambda s: 12.0 * s["rows"] * s["columns"], tolerance=1e-4,
    reference=lambda *arrays: layernorm.by_hand(*arrays)[1:], skip=("cupy",))

# --- sums, moves ------------------------------------------------------------------------------------------------------

add("sum", {"n": 2**28}, {"n": 70_001}, several(1), formula=lambda m, x: m.sum(x, None),
    moved=lambda s: 4.0 * s["n"], tolerance=1e-4)
add("sum of rows", {"n": 2**15, "m": 2**13}, {"n": 33, "m": 301}, several(1), formula=lambda m, x: m.sum(x, 1),
    moved=lambda s: 4.0 * s["n"] * s["m"], tolerance=1e-4)
add("sum of columns", {"n": 2**15, "m": 2**13}, {"n": 333, "m": 65}, several(1), formula=lambda m, x: m.sum(x, 0),
    moved=lambda s: 4.0 * s["n"] * s["m"], tolerance=1e-4)
add("transpose", {"n": 2**14, "m": 2**14}, {"n": 65, "m": 130}, several(1), formula=lambda m, x: m.turned(x) * 2.0,
    moved=lambda s: 8.0 * s["n"] * s["m"])


def table(s: Sizes) -> list[Array]:
    """A table, indices into its rows, and rows to add there."""
    index = np.random.default_rng(9).integers(0, s["rows"], s["picked"])
    return [random((s["rows"], s["columns"])), index, random((s["picked"], s["columns"]), seed=2)]


add("gather", {"rows": 2**20, "columns": 256, "picked": 2**19}, {"rows": 50, "columns": 32, "picked": 40}, table,
    formula=lambda m, x, i, v: m.take(x, i) + v,
    moved=lambda s: s["picked"] * (12.0 * s["columns"] + 8))
add("scatter-add", {"rows": 2**20, "columns": 256, "picked": 2**19}, {"rows": 50, "columns": 32, "picked": 40}, table,
    formula=lambda m, x, i, v: m.add_at(x, i, v),
    moved=lambda s: 8.0 * s["rows"] * s["columns"] + s["picked"] * (4.0 * s["columns"] + 8))

# --- products ---------------------------------------------------------------------------------------------------------

for _precision, _limit in (("highest", 1e-5), ("tf32", 5e-3), ("bf16", 5e-2)):
    add(f"product {_precision}", {"n": 8192}, {"n": 65},
        lambda s: [random((s["n"], s["n"]), seed=k) for k in range(2)],
        formula=lambda m, x, y: m.matmul(x, y), flops=lambda s: 2.0 * s["n"] ** 3, precision=_precision,
        tolerance=_limit)
add("product float16", {"n": 8192}, {"n": 65},
    lambda s: [random((s["n"], s["n"]), "float16", k) for k in range(2)],
    formula=lambda m, x, y: m.matmul(x, y), flops=lambda s: 2.0 * s["n"] ** 3, ceiling="float16", tolerance=2e-3)

# --- linear algebra ---------------------------------------------------------------------------------------------------


def definite(s: Sizes) -> list[Array]:
    """Positive definite matrices, and right sides."""
    x = random((s["batch"], s["n"], s["n"]))
    return [x @ x.transpose(0, 2, 1) / np.float32(s["n"]) + np.eye(s["n"], dtype=np.float32),
            random((s["batch"], s["n"], s["columns"]), seed=1)]


#: PyTorch asks the GPU whether a factorization failed, so its calls cannot be captured.
_SYNCHRONOUS = ("torch.compile",)
_large, _little = {"batch": 1, "n": 4096, "columns": 256}, {"batch": 1, "n": 40, "columns": 3}
_many = {"batch": 4096, "n": 64, "columns": 8}
for _name, _sizes in (("", _large), (" of many", _many)):
    add(f"cholesky{_name}", _sizes, _little, definite, formula=lambda m, a, b: m.linalg.cholesky(a),
        flops=lambda s: s["batch"] * s["n"] ** 3 / 3, tolerance=1e-4, skip=_SYNCHRONOUS)
    add(f"solve{_name}", _sizes, _little, definite, formula=lambda m, a, b: m.linalg.solve(a, b),
        flops=lambda s: s["batch"] * s["n"] ** 2 * (2 * s["n"] / 3 + 2 * s["columns"]), tolerance=1e-3,
        skip=_SYNCHRONOUS)
add("eigenvalues", {"batch": 1, "n": 512, "columns": 1}, _little | {"columns": 1}, definite,
    formula=lambda m, a, b: m.linalg.eigvalsh(a), tolerance=1e-4, skip=_SYNCHRONOUS)
add("eigenvalues of many", {"batch": 4096, "n": 32, "columns": 1}, {"batch": 2, "n": 7, "columns": 1}, definite,
    formula=lambda m, a, b: m.linalg.eigvalsh(a), tolerance=1e-4, skip=_SYNCHRONOUS)

# --- whole steps ------------------------------------------------------------------------------------------------------


def training(s: Sizes) -> list[Array]:
    """A batch, its labels, and weights and offsets of layers."""
    widths = [s["features"], *[s["width"]] * 2, s["classes"]]
    labels = np.random.default_rng(1).integers(0, s["classes"], s["batch"])
    found = [random((s["batch"], s["features"])), labels]
    for k, (a, b) in enumerate(pairwise(widths)):
        found += [random((a, b), seed=k + 2, scale=(2 / a) ** 0.5), np.zeros(b, np.float32)]
    return found


_small = {"batch": 5, "features": 12, "width": 8, "classes": 3}
add("training step 1024", {"batch": 128, "features": 784, "width": 1024, "classes": 10}, _small, training,
    step="training", skip=("cupy",))
add("training step 4096", {"batch": 8192, "features": 4096, "width": 4096, "classes": 4096}, _small, training,
    step="training", precision="tf32", skip=("cupy",),
    flops=lambda s: 6.0 * s["batch"] * s["width"] * (s["features"] + s["width"] + s["classes"]))


def block(s: Sizes) -> list[Array]:
    """Inputs of the transformer workload, of other sizes."""
    case = transformer.Block("gpu", "float32", 1e-4, batch=s["batch"], length=s["length"], width=s["width"])
    return [np.asarray(a, np.float32) for a in transformer.inputs(case)]


add("transformer block", {"batch": 8, "length": 512, "width": 1024},
    {"batch": 2, "length": 8, "width": 8 * transformer.HEADS}, block, step="block", precision="tf32", skip=("cupy",))
add("small call", {"n": 16}, {"n": 16}, several(1), formula=lambda m, x: x * 2.0 + 1.0)

__all__ = ["CASES", "Case", "Sizes", "mlp", "transformer"]
