"""Random programs of one float dtype, for properties that must hold for every graph. Nothing here decides what is
right: the reference evaluator does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from symc.ir.function import Function
from symc.ir.op import lookup
from symc.ir.traverse import postorder
from symc.ir.types import concrete_shape
from symc.ir.value import Value
from symc.opt.engine.rule import all_rules
from symc.testing.choices import one_of
from symc.testing.fuzz.grower import Grower, N
from symc.testing.fuzz.programs import closed

#: Ops that most steps choose from.
BASIC = ("add", "sub", "mul", "div", "neg", "exp", "log", "tanh", "sqrt", "log1p", "expm1", "sigmoid", "maximum",
         "minimum", "abs", "where")


class Straight(Grower):
    """Elementwise ops, forms that some rule looks for, movements, reductions and products."""

    shapes = ((N, 3), (3,), (N,), (3, 3), ())

    def __init__(self, rng: np.random.Generator, dtype: str):
        super().__init__(rng, (dtype,))
        self.ops = [op for op in self.ops if "checks" not in op.traits]
        self.ops += [lookup(name) for name in BASIC] * (len(self.ops) // 10)
        self.rules = [r for r in all_rules() if r.by_pattern and not r.dtypes]

    def forms(self) -> list[Callable[[], Value]]:
        e, m, r = self.elementwise, self.movement, self.reduce
        return [e, e, e, e, e, e, self.left_side, self.left_side, r, r, m, m, m, self.product]

    def float(self) -> Value:
        return self.pick(lambda v: v.dtype.kind == "f")

    def reduce(self) -> Value:
        x = self.float()
        name = str(self.rng.choice(["sum", "max", "logsumexp", "norm", "min"]))
        return lookup(name)(x, axes=tuple(a for a in range(x.ndim) if self.rng.random() < 0.6))

    def left_side(self) -> Value:
        """The left side of a rule, on values of the program; not of one whose promises nobody keeps."""
        x, r = self.float(), one_of(self.rng, self.rules)
        if "f" not in r.kinds or r.build is None:
            raise ValueError
        left = r.build(x, *[self.like(x.type) for _ in r.variables[1:]])[0]
        if any(v.op.name == "assume" for v in postorder([left])):
            raise ValueError
        return left


def random_function(seed: int, steps: int = 12, dtype: str = "f64") -> Function:
    """A function of a few inputs that share the symbolic size n. The same seed gives the same function."""
    grower = Straight(np.random.default_rng(seed), dtype)
    grower.grow(steps)
    made = [v for v in grower.pool if v.operands]
    floats, bools = ([v for v in made if (v.dtype.kind == "b") == b] for b in (False, True))
    return closed(grower.leaves, [*floats[-2:], *bools[-1:]] or grower.pool[:1])


def random_arrays(f: Function, seed: int, n: int = 4) -> list[np.ndarray]:
    """Ordinary numbers for the inputs of a function, with every size n."""
    rng = np.random.default_rng(seed)
    return [np.asarray(rng.uniform(0.2, 2.0, concrete_shape(i.type.shape, {"n": n})) * rng.choice([1, 1, -1]),
                       i.type.dtype) for i in f.inputs]
