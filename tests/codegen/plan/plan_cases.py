"""What the tests of planning share: random functions, and an interpreter that runs a plan on real bytes."""

from __future__ import annotations

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from symc.codegen.kernel.source import kernel_form_of
from symc.ir.dim import Size, size_name
from symc.ir.function import Function, Input, function
from symc.ir.op import lookup
from symc.ir.ops.kernel import fused
from symc.ir.ops.leaf import array
from symc.ir.plan import Plan, Step
from symc.ir.reference import apply
from symc.ir.size_values import evaluate
from symc.ir.types import TensorType, TupleType, concrete_shape
from symc.ir.value import Region, Value, fresh_input, param

Choice = tuple[int, int, int]


def two_results(t: TensorType) -> Region:
    """A kernel with the product and the sum of two arrays."""
    a, b = param(0, t), param(1, t)
    return Region([t, t], [a * b, a + b])


class Maker:
    """Grows a function out of choices (numbers drawn by hypothesis); every list of choices is a valid function."""

    def __init__(self, n: Size, m: Size):
        self.n, self.m = n, m
        shapes = {"x": (n,), "y": (n, m), "b0": (n,), "w": (n,), "z": (m,)}
        roles = {"b0": "state", "w": "state"}
        inputs = [Input(name, TensorType("f64", s), roles.get(name, "arg")) for name, s in shapes.items()]
        self.leaves = [(fresh_input(i.type), i) for i in inputs]
        self.pool: list[Value] = [v for v, _ in self.leaves]
        self.pool.append(array(np.arange(3.0)))

    def pick(self, k: int, like: TensorType | None = None, ndim: int | None = None) -> Value | None:
        fits = [v for v in self.pool if (like is None or v.type is like) and (ndim is None or v.ndim == ndim)]
        return fits[k % len(fits)] if fits else None

    def grow(self, choice: Choice) -> None:
        what, i, j = choice
        a = self.pick(i)
        assert a is not None
        b = self.pick(j, like=a.type)
        assert b is not None
        makers = [self.binary, self.unary, self.total, self.spread, self.reshape, self.call, self.kernel, self.turn]
        found = makers[what % len(makers)](a, b, j)
        self.pool += found if isinstance(found, list) else [found]

    def binary(self, a: Value, b: Value, j: int) -> Value:
        return lookup(("add", "mul", "maximum")[j % 3])(a, b)

    def unary(self, a: Value, b: Value, j: int) -> Value:
        return lookup(("sin", "neg")[j % 2])(a)

    def total(self, a: Value, b: Value, j: int) -> Value:
        return lookup("sum")(a, axes=(j % a.ndim,)) if a.ndim else -a

    def spread(self, a: Value, b: Value, j: int) -> Value:
        if a.ndim == 0:
            return lookup("broadcast")(a, axes=(), shape=(self.n,))
        return lookup("broadcast")(a, axes=(0,), shape=(*a.shape, 2)) if a.ndim == 1 else lookup("exp")(-(a * a))

    def reshape(self, a: Value, b: Value, j: int) -> Value:
        if a.ndim == 2 and j % 2:
            return lookup("reshape")(a, shape=(a.shape[0] * a.shape[1],))
        if a.ndim < 2:
            return lookup("reshape")(a, shape=(1, *a.shape))
        return lookup("reshape")(a, shape=a.shape[1:] if a.shape[0] == 1 else a.shape)

    def call(self, a: Value, b: Value, j: int) -> Value:
        return lookup("sort")(a, axis=j % a.ndim) if a.ndim else lookup("abs")(a)

    def kernel(self, a: Value, b: Value, j: int) -> list[Value]:
        pair = fused(a, b, regions=[two_results(a.type)])
        return [pair[0], pair[1]] if j % 3 else [pair[j % 2]]

    def turn(self, a: Value, b: Value, j: int) -> Value:
        if a.ndim == 2:
            return lookup("dot")(a, b, contract=((1,), (1,)), batch=((), ()))
        return lookup("transpose")(a, perm=tuple(range(a.ndim))[::-1])

    def function(self, outputs: list[int], updates: tuple[int, int]) -> Function:
        results = [self.pool[-1 - k % len(self.pool)] for k in outputs]
        new = [(k, self.pick(-1 - u, like=self.pool[k].type)) for k, u in zip((2, 3), updates, strict=True) if u]
        return function("f", self.leaves, results, new)


def make_function(choices: list[Choice], outputs: list[int], updates: tuple[int, int], sizes: tuple[int, int],
                  symbolic: bool) -> Function:
    maker = Maker(*(size_name(s) if symbolic else k for s, k in zip("nm", sizes, strict=True)))
    for c in choices:
        maker.grow(c)
    return maker.function(outputs, updates)


def some_arrays(f: Function, sizes: dict[str, int]) -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    return [rng.normal(size=concrete_shape(i.type.shape, sizes)) for i in f.inputs]


CALLS_FAIL_NOT = lambda v: False
SORTS_FAIL = lambda v: v.op.name == "sort"

choices = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 40), st.integers(0, 40)), min_size=2, max_size=25)
functions = st.builds(make_function, choices, st.lists(st.integers(0, 9), max_size=3),
                      st.tuples(st.integers(0, 3), st.integers(0, 3)), st.just((3, 4)) | st.just((0, 2)), st.booleans())
donations = st.frozensets(st.integers(0, 4))
failing = st.sampled_from([CALLS_FAIL_NOT, SORTS_FAIL, lambda v: v.op.name != "fused"])
planned = settings(max_examples=150, deadline=None)
SIZES = {"n": 3, "m": 4}  # for functions whose sizes are symbols


class Machine:
    """Runs a plan: every buffer is bytes of its own, temps are stretches of one arena, garbage at first."""

    def __init__(self, plan: Plan, arrays: list[np.ndarray], sizes: dict[str, int]):
        self.plan, self.sizes = plan, sizes
        self.arena = np.full(evaluate(plan.arena, sizes), 0xA5, np.uint8)
        self.bytes: dict[str, np.ndarray] = {}
        for name, b in plan.buffers.items():
            n = evaluate(b.nbytes, sizes)
            if b.kind == "temp":
                start = evaluate(plan.offsets[name], sizes)
                assert start + n <= len(self.arena)
                self.bytes[name] = self.arena[start : start + n]
            elif b.kind == "constant":
                self.bytes[name] = np.frombuffer(b.value.attrs["value"].data.tobytes(), np.uint8)  # read-only
            elif b.kind == "result":
                self.bytes[name] = np.full(n, 0xA5, np.uint8)
            else:
                self.bytes[name] = np.frombuffer(bytearray(arrays[b.value.attrs["index"]].tobytes()), np.uint8)

    def view(self, memory: np.ndarray, t: TensorType) -> np.ndarray:
        n = evaluate(t.nbytes, self.sizes)
        return memory[:n].view(t.dtype).reshape(concrete_shape(t.shape, self.sizes))

    def step(self, plan: Plan, step: Step, memory: dict[str, np.ndarray]) -> None:
        """Run a step of a plan whose buffers are ``memory``."""
        v = step.value
        if step.kind == "copy":
            n = evaluate(v.type.nbytes, self.sizes)
            memory[step.writes[0]][:n] = memory[step.reads[0]][:n]
            return
        operands = [self.view(memory[name], o.type) for name, o in zip(step.reads, v.operands, strict=True)]
        results = list(enumerate(zip(step.writes, v.types, strict=True)))
        # what several results depend on is written over by kernels that know it, and read all of an element first
        apart = step.kind == "launch" and set(step.reads) & set(step.writes) and not kernel_form_of(step)[1]
        found: list[np.ndarray] = []
        for r, (name, t) in reversed(results) if len(self.plan.steps) % 2 else results:
            if apart or not found:  # a kernel may compute its results one after another, in any order
                out = apply(v, operands, self.sizes, False, None)
                found = [np.array(x) for x in (out if isinstance(v.type, TupleType) else (out,))]
            self.view(memory[name], t)[...] = found[r]

    def run(self) -> list[np.ndarray]:
        for step in self.plan.steps:
            self.step(self.plan, step, self.bytes)
        results = self.plan.function.body.results
        return [self.view(self.bytes[name], v.type) for name, v in zip(self.plan.results, results, strict=True)]
