"""The CUDA kernels of symc's ops and of programs, as they are given to the compiler for every kind of GPU."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import numpy as np

import symc as sc
from symc.codegen.cuda.source import CudaSource
from symc.codegen.cuda.templates import Family, family
from symc.codegen.kernel.source import Form, kernel_form_of
from symc.codegen.language.syntax import Unsupported
from symc.codegen.plan.gemm import as_gemm, is_product
from symc.codegen.plan.planner import make_plan
from symc.driver.build import build
from symc.errors import SymcError
from symc.ir.dim import Size
from symc.ir.function import Function, Input, function
from symc.ir.ops.kernel import results_of
from symc.ir.record import dataclass
from symc.ir.size_values import estimate, names
from symc.opt.engine.passes import optimize
from symc.runtime.cpu.program import every_step
from symc.runtime.cuda import products
from tests.ir import op_cases

#: Sizes at which variants are chosen: few and many elements, and more than 32 bits count.
SIZES = (3, 100, 1000, 3000, 70_000, 2**33)


@dataclass(frozen=True)
class Item:
    """A kernel: what it is of, and its text, whose entries are called as one likes."""

    name: str
    choice: str
    variants: Family
    dtypes: str

    def source(self, name: str) -> CudaSource:
        return self.variants.source(self.choice, name)


def number(n: int) -> Callable[[Size], int]:
    """All names of sizes are ``n``."""
    return lambda size: estimate(size, dict.fromkeys(names(size), n))


def forms_of(f: Function) -> Iterator[Form]:
    """The kernels of a function on a device, after the optimizer."""
    final = optimize(f).function
    for _, step in every_step(make_plan(final, frozenset(final.updates))):
        v = step.value
        if step.kind == "launch":
            yield kernel_form_of(step)
        elif step.kind == "call" and is_product(v):
            yield from products.forms_of(v) if as_gemm(v) is not None else [products.summed_form(v)]


def items_of(name: str, f: Function) -> Iterator[Item]:
    """Every variant of every kernel that some of ``SIZES`` choose."""
    for form in forms_of(f):
        try:
            variants = family(form)
        except Unsupported:
            continue  # a function that has it cannot be compiled for a device, and says so
        for choice in dict.fromkeys(variants.choose(number(n)) for n in SIZES):
            item = Item(name, choice, variants, " ".join(sorted({str(x.type.dtype) for x in f.params})))
            if all(0 not in e.grid for e in item.source("kernel").entries):  # or it is never launched
                yield item


def of_ops() -> Iterator[tuple[str, Function]]:
    """Every op, on the samples of every combination of dtypes and numbers of axes."""
    for op in op_cases.ON_DEVICES:
        seen = set()
        for arrays, attrs in op_cases.cases(op):
            key = tuple((a.dtype.char, a.ndim, a.size > 0) for a in arrays), str(sorted(attrs.items()))
            if key in seen or len(seen) > 5:
                continue
            seen.add(key)
            v, leaves = op_cases.apply(op, arrays, attrs)
            inputs = [(x, Input(f"x{k}", x.type)) for k, x in enumerate(leaves)]
            try:
                yield op.name, function(op.name, inputs, results_of(v))
            except SymcError:
                continue


PROGRAMS: dict[str, Callable[[str], tuple]] = {}


def program(f: Callable[[str], tuple]) -> Callable[[str], tuple]:
    """Of a dtype: outputs, and updates if there are any."""
    PROGRAMS[f.__name__] = f
    return f


@program
def chain(dtype):
    x, y = sc.input("x", dtype, ("n", "m")), sc.input("y", dtype, ("n", "m"))
    for k in range(5):
        x = sc.tanh(x * y + k) - sc.exp(-sc.abs(y))
    return (x,)


@program
def rows(dtype):
    x = sc.input("x", dtype, ("n", "m"))
    return sc.softmax(x, axis=1), sc.logsumexp(x, axis=1), sc.var(x, axis=1), sc.argmax(x, axis=1)


@program
def rows_of_known_length(dtype):
    found = []
    for m in (8, 32, 100, 256, 1000, 4096, 5000, 20_000):
        x = sc.input(f"x{m}", dtype, ("n", m))
        found += [sc.softmax(x, axis=1), sc.mean(x * x, axis=1)]
    return tuple(found)


@program
def columns(dtype):
    x = sc.input("x", dtype, ("n", "m"))
    return sc.sum(x * x, axis=0), sc.max(x, axis=0), sc.mean(sc.exp(x), axis=0)


@program
def wholes(dtype):
    x = sc.input("x", dtype, ("n", "m"))
    return sc.sum(x * x), sc.max(x), sc.mean(sc.abs(x))


@program
def layernorm(dtype):
    x, g = sc.input("x", dtype, ("n", 1000)), sc.input("g", dtype, ("n", 1000))
    scale, offset = sc.input("scale", dtype, (1000,)), sc.input("offset", dtype, (1000,))
    d = x - sc.mean(x, axis=1, keepdims=True)
    y = d / sc.sqrt(sc.mean(d * d, axis=1, keepdims=True) + 1e-5) * scale + offset
    return (y, *sc.grad(sc.sum(y * g), [x, scale, offset]))


@program
def turned(dtype):
    x, y = sc.input("x", dtype, ("n", "m")), sc.input("y", dtype, ("m", "n"))
    z = sc.input("z", dtype, (5, "n", "m"))
    return x.T + y, sc.transpose(z, (2, 1, 0)) * 2, sc.transpose(z, (0, 2, 1)) + 1


@program
def gathered(dtype):
    x, i = sc.input("x", dtype, ("n", 64)), sc.input("i", "int64", ("k",))
    g = sc.input("g", dtype, ("k", 64))
    return x[i] * 2, sc.grad(sc.sum(x[i] * g), [x])[0]


@program
def sorted_and_summed(dtype):
    x = sc.input("x", dtype, ("n", 50))
    return sc.sort(x, axis=1), sc.argsort(x, axis=1), sc.cumsum(x, axis=1), sc.cumsum(x, axis=0)


@program
def attention(dtype):
    x = sc.input("x", dtype, (4, 2, 64, 32))
    p = sc.softmax(x @ sc.transpose(x, (0, 1, 3, 2)) / 8, axis=-1)
    y = p @ x
    return (y, *sc.grad(sc.sum(y * y), [x]))


@program
def training(dtype):
    x, labels = sc.input("x", dtype, ("n", 20)), sc.input("labels", "int64", ("n",))
    rng = np.random.default_rng(0)
    w = [sc.shared(rng.normal(size=s).astype(dtype), f"w{k}") for k, s in enumerate([(20, 30), (30,), (30, 10), (10,)])]
    h = sc.maximum(x @ w[0] + w[1], 0)
    z = h @ w[2] + w[3]
    loss = -sc.mean(sc.log_softmax(z, axis=1)[sc.arange(x.shape[0]), labels])
    updates = []
    for p, g in zip(w, sc.grad(loss, w), strict=True):
        m, v = sc.shared(np.zeros(p.shape, dtype)), sc.shared(np.zeros(p.shape, dtype))
        m1, v1 = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        updates += [(m, m1), (v, v1), (p, p - 0.01 * m1 / (sc.sqrt(v1) + 1e-8))]
    return (loss,), updates


@functools.cache
def corpus() -> tuple[Item, ...]:
    """Every distinct kernel."""
    found: dict[str, Item] = {}
    functions = list(of_ops())
    for name, make in PROGRAMS.items():
        for dtype in ("float32", "float64", "float16"):
            made = make(dtype)
            outputs, updates = made if isinstance(made[0], tuple) else (made, [])
            built = build(list(outputs), None, updates, None, None, name, None)
            functions.append((f"{name} {dtype}", built.function))
    for name, f in functions:
        for item in items_of(name, f):
            found.setdefault(item.source("kernel").text, item)
    return tuple(found.values())
