"""Random programs: typed graphs over the op records, for properties that must hold for every graph.

Values have one of a few shapes, so that most ops find operands. Nothing here decides what is right: the reference
evaluator does.
"""

from __future__ import annotations

import numpy as np

from symc.errors import SymcError
from symc.ir.dim import size_name
from symc.ir.function import Function, Input
from symc.ir.op import Op, lookup, splat
from symc.ir.traverse import close_over, postorder
from symc.ir.types import TensorType
from symc.ir.value import Value, fresh_input
from symc.opt.engine.rule import all_rules
from symc.testing.fuzz.grower import elementwise_ops

#: Ops that most steps choose from.
BASIC = ("add", "sub", "mul", "div", "neg", "exp", "log", "tanh", "sqrt", "log1p", "expm1", "sigmoid", "maximum",
         "minimum", "abs", "where")


def random_function(seed: int, steps: int = 12, dtype: str = "f64", basic: float = 0.6) -> Function:
    """A function of two or three inputs that share the symbolic size n. The same seed gives the same function."""
    rng = np.random.default_rng(seed)
    n = size_name("n")
    shapes = [(n, 3), (3,), (n,), (3, 3), ()]
    inputs = [fresh_input(TensorType(dtype, shapes[0])), fresh_input(TensorType(dtype, shapes[1]))]
    if rng.random() < 0.5:
        inputs.append(fresh_input(TensorType(dtype, shapes[int(rng.integers(2, 5))])))
    pool: list[Value] = [*inputs, splat(1, inputs[0].type), splat(float(rng.integers(-2, 4)), inputs[1].type)]
    ops = [op for op in elementwise_ops() if "checks" not in op.traits]
    for _ in range(steps):
        v = _step(rng, pool, ops, basic)
        if v is not None:
            pool.append(v)
    results = [v for v in pool[len(inputs) :] if v.dtype.kind != "b"][-2:] + [v for v in pool if v.dtype.kind == "b"][
        -1:
    ]
    body = close_over(inputs, results)
    return Function("fuzz", tuple(Input(f"x{k}", i.type, declared=i.type) for k, i in enumerate(inputs)), body)


def _step(rng: np.random.Generator, pool: list[Value], ops: list[Op], basic: float) -> Value | None:
    kind = rng.random()
    recent = max(0, len(pool) - 4) if rng.random() < 0.7 else 0
    x = pool[int(rng.integers(recent, len(pool)))]
    try:
        if kind < 0.15:
            return _left_side(rng, pool, x)
        if kind < 0.65:
            op = (
                lookup(BASIC[int(rng.integers(len(BASIC)))])
                if rng.random() < basic
                else ops[int(rng.integers(len(ops)))]
            )
            return _elementwise(rng, pool, op, x)
        return _movement(rng, pool, x)
    except (SymcError, TypeError, ValueError, IndexError):
        return None  # not for these operands; the next step tries another


def _like(rng: np.random.Generator, pool: list[Value], t: TensorType) -> Value:
    same = [v for v in pool if v.type is t]
    if same and rng.random() < 0.9:
        return same[int(rng.integers(len(same)))]
    return splat(False if t.dtype.kind == "b" else float(rng.choice([0, 1, -1, 2, 0.5, 3])), t)


def _elementwise(rng: np.random.Generator, pool: list[Value], op: Op, x: Value) -> Value:
    if op.name == "where":
        return op(_like(rng, pool, x.type.with_dtype("bool")), x, _like(rng, pool, x.type))
    if rng.random() < 0.5:
        try:
            return op(x)
        except TypeError:
            pass
    operands = [x, _like(rng, pool, x.type)]
    return op(*(operands if rng.random() < 0.5 else operands[::-1]))


def _left_side(rng: np.random.Generator, pool: list[Value], x: Value) -> Value | None:
    """A form that some rule looks for, on values of the program."""
    rules = [
        r
        for r in all_rules()
        if r.pattern is not None and r.build is not None and not r.dtypes and x.dtype.kind in r.kinds
    ]
    r = rules[int(rng.integers(len(rules)))] if rules else None
    if r is None or r.build is None:
        return None
    left = r.build(x, *[_like(rng, pool, x.type) for _ in r.variables[1:]])[0]
    return None if any(v.op.name == "assume" for v in postorder([left])) else left  # nobody keeps what it promises


def _movement(rng: np.random.Generator, pool: list[Value], x: Value) -> Value | None:
    choice = int(rng.integers(9))
    axes = tuple(a for a in range(x.ndim) if rng.random() < 0.6)
    if choice in (0, 1):
        name = ("sum", "max", "logsumexp", "norm", "min")[int(rng.integers(5))]
        return lookup(name)(x, axes=axes)
    if choice in (2, 3):
        wide = [v for v in pool if v.ndim > x.ndim]
        target = wide[int(rng.integers(len(wide)))]
        places = [a for a in range(target.ndim)]
        rng.shuffle(places)
        return lookup("broadcast")(x, axes=tuple(sorted(places[: x.ndim])), shape=target.shape)
    if choice == 4:
        return lookup("transpose")(x, perm=tuple(int(p) for p in rng.permutation(x.ndim)))
    if choice == 5:
        return lookup("reshape")(x, shape=(x.type.size,) if rng.random() < 0.5 else (*x.shape, 1))
    if choice == 6:
        keep = tuple(s if not isinstance(s, int) or rng.random() < 0.5 else max(s - 1, 0) for s in x.shape)
        return lookup("slice")(x, start=tuple(0 for _ in keep), size=keep, step=(1,) * x.ndim)
    if choice == 7:
        return lookup("cast")(lookup("cast")(x, dtype=np.dtype("f8")), dtype=x.dtype)
    other = pool[int(rng.integers(len(pool)))]
    return lookup("dot")(x, other, contract=((x.ndim - 1,), (int(rng.integers(max(other.ndim, 1))),)), batch=((), ()))


def random_arrays(f: Function, seed: int, n: int = 4) -> list[np.ndarray]:
    """Ordinary numbers for the inputs of a function, with every size n."""
    from symc.ir.types import concrete_shape

    rng = np.random.default_rng(seed)
    return [
        rng.uniform(0.2, 2.0, concrete_shape(i.type.shape, {"n": n})).astype(i.type.dtype)
        * rng.choice([1, 1, -1]).astype(i.type.dtype)
        for i in f.inputs
    ]
