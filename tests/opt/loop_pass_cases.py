"""Random functions with loops of the kinds that the passes on loops look for.

Bodies hold products of rows, products with carries, sums over steps, invariant values, values that are there twice;
loops share what they read, and often only their last rows are read. Everything is built as a careless user would: all
that a body uses from outside is captured as it is, invariant or not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symc.ir.bodies import built, close, loop_captures, make_cond
from symc.ir.dim import Size, size_name
from symc.ir.function import Function, Input, function
from symc.ir.op import lookup
from symc.ir.ops.control import element_type, scan, while_
from symc.ir.ops.kernel import results_of
from symc.ir.ops.linalg import matmul
from symc.ir.ops.reduce import sum_
from symc.ir.ops.shape import broadcast, flip, slice_
from symc.ir.traverse import postorder
from symc.ir.types import TensorType
from symc.ir.value import Value, fresh_input

N, D, STEPS = 2, 3, 6
STATE, WEIGHT = TensorType("f64", (N, D)), TensorType("f64", (D, D))


class Maker:
    """Grows one function. ``length``: the number of steps, a number or a name."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.length: Size = size_name("t") if self.rng.random() < 0.5 else STEPS
        named = {"x": (self.length, N, D), "y": (self.length, N, D), "h": (N, D), "g": (N, D), "u": (D, D),
                 "w": (D, D), "b": (D,)}
        self.inputs = {k: fresh_input(TensorType("f64", s)) for k, s in named.items()}
        self.sequences = [self.inputs["x"], self.inputs["y"]]
        self.states = [self.inputs["h"], self.inputs["g"]]
        self.weights = [self.inputs["u"], self.inputs["w"]]

    def one(self, of: Sequence[Value]) -> Value:
        return of[int(self.rng.integers(len(of)))]

    def value(self, states: list[Value], weights: list[Value]) -> Value:
        """One more value of the type of a state."""
        kind, a, b = self.rng.random(), self.one(states), self.one(states)
        if kind < 0.35:
            return lookup("tanh")(matmul(a, self.one(weights)))
        if kind < 0.5:
            return lookup("add")(a, b)
        if kind < 0.65:
            return lookup("mul")(a, lookup("sin")(b))
        if kind < 0.8:
            return a + broadcast(lookup("cos")(self.inputs["b"]), axes=(1,), shape=(N, D))
        if kind < 0.9:
            return lookup("sub")(a, b) * 0.5
        return matmul(a, lookup("tanh")(matmul(self.one(weights), self.one(weights))))

    def body(self, states: list[Value], weights: list[Value], depth: int) -> list[Value]:
        out: list[Value] = []
        for _ in range(int(self.rng.integers(2, 6))):
            pool = [*states, *out[-3:]]
            if depth < 2 and self.rng.random() < 0.15:
                out += [r for r in results_of(self.nested(pool, weights, depth)) if r.type is STATE]
            else:
                out.append(self.value(pool, weights))
        return out

    def nested(self, states: list[Value], weights: list[Value], depth: int) -> Value:
        kind = self.rng.random()
        if kind < 0.4:
            return self.scan([], states, weights, depth + 1)
        if kind < 0.6:
            return self.loop(states, weights, depth + 1)
        which = lookup("lt")(sum_(self.one(states), axes=(0, 1)), 0.1)
        branches = []
        wanted = [self.one(states) for _ in range(2)]
        for _ in range(2):
            with built() as made:
                results = [*self.body(states, weights, depth + 1), *wanted][:2]
            branches.append((results, made))
        return make_cond(which, branches)

    def scan(self, sequences: list[Value], states: list[Value], weights: list[Value], depth: int) -> Value:
        """A scan of which every carry is a state, and perhaps one a sum of weights."""
        rng = self.rng
        xs = [self.one(sequences) for _ in range(int(rng.integers(0, 3)))] if sequences else []
        xs = [flip(x, (0,)) for x in xs] if rng.random() < 0.15 else xs
        init = [self.one(states) for _ in range(int(rng.integers(1, 4)))]
        carries = [fresh_input(STATE) for _ in init]
        rows = [fresh_input(element_type(x.type)) for x in xs]
        values = self.body([*carries, *rows, self.one(states)], weights, depth)
        new = [c if rng.random() < 0.1 else self.one(values) for c in carries]
        ys = [self.one([*values, *carries, *rows]) for _ in range(int(rng.integers(0, 4)))]
        if rng.random() < 0.4:
            total, start = fresh_input(WEIGHT), self.one(weights)
            a, b = self.one([*values, *rows]), self.one(values)
            init, carries = [*init, start], [*carries, total]
            new.append(total + lookup("dot")(a, b, contract=((0,), (0,)), batch=((), ())))
        return self.close_scan(init, xs, carries, rows, [*new, *ys], self.length if sequences else 2)

    def close_scan(self, init: list[Value], xs: list[Value], carries: list[Value], rows: list[Value],
                   results: list[Value], length: Size) -> Value:
        captured = self.captured([*carries, *rows], results)
        body = close([*carries, *rows], captured, results)
        return scan(*init, *xs, *captured, carry=len(init), xs=len(xs), length=length, regions=(body.region,),
                    reverse=bool(self.rng.random() < 0.4))

    def captured(self, params: list[Value], results: list[Value]) -> list[Value]:
        """What the body uses from outside: invariant values stay inside where they are made of inputs."""
        known = set(params)
        tight = loop_captures(params, results)
        leaves = [v for v in postorder(results, stop=known.__contains__) if v.op.name == "input" and v not in known]
        outer = [v for v in tight if any(x.regions for x in postorder([v]))]  # loops outside stay outside
        return [*dict.fromkeys([*outer, *leaves])]

    def loop(self, states: list[Value], weights: list[Value], depth: int) -> Value:
        init = [self.one(states) for _ in range(int(self.rng.integers(1, 3)))]
        carries = [fresh_input(STATE) for _ in init]
        values = self.body([*carries, self.one(states)], weights, depth)
        test = lookup("lt")(sum_(carries[0], axes=(0, 1)), 0.3)
        new = [self.one(values) for _ in carries]
        captured = self.captured(carries, [test, *new])
        regions = [close(carries, captured, r).region for r in ([test], new)]
        return while_(*init, *captured, carry=len(init), max_steps=3, regions=regions)

    def outputs(self, v: Value) -> list[Value]:
        """Some of the results, whole or the last rows of them."""
        out = []
        for r in results_of(v):
            kind = self.rng.random()
            if kind < 0.4:
                out.append(r)
            elif kind < 0.5 and r.ndim == 3:
                out.append(flip(r, (0,)))
            elif kind < 0.75 and r.ndim == 3 and r.shape[0] == self.length:
                n = 1 + int(self.rng.integers(2))
                first = 0 if v.attrs["reverse"] else self.length - n
                out.append(slice_(r, start=(first, 0, 0), size=(n, *r.shape[1:]), step=(1, 1, 1)))
        return out

    def function(self) -> Function:
        outputs: list[Value] = []
        for _ in range(int(self.rng.integers(1, 4))):
            state = self.rng.bit_generator.state
            for again in range(1 + (self.rng.random() < 0.3)):
                if again:  # the same loop, but for what follows
                    self.rng.bit_generator.state = state
                    self.rng.random()
                made = (self.scan(self.sequences, self.states, self.weights, 0) if self.rng.random() < 0.8
                        else self.nested(self.states, self.weights, 0))
                outputs += self.outputs(made)
                self.states += [r for r in results_of(made) if r.type is STATE][:1]
                self.sequences += [r for r in results_of(made) if r.shape == (self.length, N, D)][:1]
        pairs = [(leaf, Input(name, leaf.type)) for name, leaf in self.inputs.items()]
        return function("loops", pairs, outputs or [self.states[-1]])


def random_loops(seed: int) -> Function:
    """The same function for the same seed."""
    return Maker(seed).function()


def arrays_for(f: Function, seed: int, steps: int = STEPS) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.uniform(-0.6, 0.6, [s if isinstance(s, int) else steps for s in i.type.shape]) for i in f.inputs]
