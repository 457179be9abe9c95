"""The generators: programs of ops, of samples of ops, of left sides of rules, in NumPy's manner, and with loops."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from symc.ir.attrs import Attrs
from symc.ir.function import Function
from symc.ir.op import lookup, splat
from symc.ir.ops.kernel import results_of
from symc.ir.record import replace as replace_fields
from symc.ir.traverse import free_inputs, postorder, replace
from symc.ir.types import DTYPES, TensorType, TupleType
from symc.ir.value import Region, Value, fresh_input, make
from symc.opt.engine.rule import Rule, all_rules, lookup_rule
from symc.testing.choices import one_of
from symc.testing.fuzz.grower import MISTAKES, Grower
from symc.testing.fuzz.programs import STYLES, Program, closed, data_for, generator
from symc.testing.fuzz.sampled import sampled_ops, samples_of
from symc.testing.fuzz.straight import random_function
from symc.testing.rule_forms import retyped

#: Families whose left sides users do not write, and whose rules make other things than the same numbers.
NOT_AIMED = frozenset({"decompose", "debug", "remat"})


@generator("straight")
def straight(seed: int, aim: str = "") -> Program:
    """Elementwise ops, movements, reductions and products of one float dtype."""
    rng = np.random.default_rng(seed)
    f = random_function(seed, int(rng.integers(6, 22)), "f32" if rng.random() < 0.25 else "f64")
    return Program(f"straight:{seed}", f, data_for(f, rng), edges=data_for(f, rng, ("edges",), 1))


@generator("mixed")
def mixed(seed: int, aim: str = "") -> Program:
    """Many dtypes at once, indices, masks, scatters, casts."""
    rng = np.random.default_rng(seed)
    grower = Grower(rng)
    grower.grow(int(rng.integers(4, 18)))
    return _finished(f"mixed:{seed}", rng, grower)


def _finished(name: str, rng: np.random.Generator, grower: Grower, results: Sequence[Value] = ()) -> Program:
    made = [v for v in grower.pool if v.operands]
    chosen = [*results, *made[-2:]] or grower.pool[:1]
    f = closed(grower.leaves, chosen)
    if rng.random() < 0.25 and f.inputs:
        f = with_state(f, rng)
    donated = frozenset(k for k in range(len(f.inputs)) if rng.random() < 0.15)
    return Program(name, f, data_for(f, rng), donated, edges=data_for(f, rng, ("edges",), 1))


def with_state(f: Function, rng: np.random.Generator) -> Function:
    """A function of which an input is a state that a result, or a number, replaces in each call."""
    k = int(rng.integers(len(f.inputs)))
    t = f.inputs[k].type
    fits = [v for v in f.values() if v.type is t and v.op.name != "constant"]
    new = fits[-1] if fits and rng.random() < 0.8 else splat(1, t)
    inputs = tuple(replace_fields(i, role="state") if j == k else i for j, i in enumerate(f.inputs))
    return replace_fields(f, inputs=inputs, body=Region(f.body.params, [*f.body.results, new]), updates=(k,))


# --- samples of ops ---------------------------------------------------------------------------------------------------


@generator("ops")
def ops(seed: int, aim: str = "") -> Program:
    """One op on operands that its record names as legal, each behind something that changes nothing; then others."""
    rng = np.random.default_rng(seed)
    names = sampled_ops()
    op = lookup(aim if aim in names else str(rng.choice(names)))
    known = samples_of(op)
    arrays, attrs = one_of(rng, known)
    leaves = [fresh_input(TensorType(a.dtype, a.shape)) for a in arrays]
    grower = Grower(rng, tuple(dict.fromkeys([*_names(arrays), "bool"])))
    own = list(grower.leaves)
    grower.leaves, grower.pool = [*leaves, *own], [*grower.pool, *leaves]
    operands = [_unchanged(rng, x) if rng.random() < 0.4 else x for x in leaves]
    made = make(op, operands, Attrs(attrs))
    results = results_of(made)
    grower.pool += results
    grower.grow(int(rng.integers(0, 7)))
    name = f"ops:{seed}" + (f":{aim}" if aim else "")
    program = _finished(name, rng, grower, results)
    fixed = dict(zip(leaves, arrays, strict=True))  # what other operands would do is not legal for every op
    data = [tuple(np.array(fixed.get(v, a)) for v, a in zip(grower.leaves, row,
    strict=False)) + row[len(grower.leaves) :]
            for row in program.data[:3]]
    return Program(name, program.function, tuple(data), program.donated)


def _names(arrays: Sequence[np.ndarray] | Sequence[Value]) -> list[str]:
    from symc.ir.types import DTYPE_NAMES

    return [DTYPE_NAMES[a.dtype] for a in arrays] or ["f64"]


def _unchanged(rng: np.random.Generator, x: Value) -> Value:
    """``x`` behind ops that give the same numbers."""
    op = lookup
    forms = [lambda: op("transpose")(op("transpose")(x, perm=tuple(range(x.ndim))[::-1]),
             perm=tuple(range(x.ndim))[::-1]),
             lambda: op("reshape")(op("reshape")(x, shape=(x.type.size,)), shape=x.shape),
             lambda: op("where")(op("eq")(x, x), x, x), lambda: op("maximum")(x, x), lambda: op("neg")(op("neg")(x)),
             lambda: op("slice")(op("concat")(x, x, axis=0), start=(0,) * x.ndim, size=x.shape, step=(1,) * x.ndim),
             lambda: op("stop_gradient")(x), lambda: x * 1,
             lambda: op("cast")(op("cast")(x, dtype=DTYPES["f64"]), dtype=x.dtype) if x.dtype.kind == "f" else x]
    try:
        return one_of(rng, forms)()
    except MISTAKES:
        return x


# --- left sides of rules ----------------------------------------------------------------------------------------------


def aimed_rules() -> list[str]:
    """The rules whose left sides can be made."""
    return [r.name for r in all_rules() if r.family not in NOT_AIMED and "opt-in" not in r.tags]


@functools.cache
def examples_of(r: Rule) -> list[Value]:
    """Left sides of a rule with one result."""
    try:
        return [v for v in r.examples() if not isinstance(v.type, TupleType)]
    except MISTAKES:
        return []


@generator("rules")
def rules(seed: int, aim: str = "") -> Program:
    """The left side of a rule on random operands, in the midst of other things."""
    rng = np.random.default_rng(seed)
    names = aimed_rules()
    r = lookup_rule(aim if aim in names else str(rng.choice(names)))
    found = examples_of(r)
    if not found:
        return straight(seed, "")
    left = one_of(rng, found)
    if rng.random() < 0.25:
        narrow = retyped(left, "f32")
        left = left if narrow is None else narrow
    leaves = free_inputs([left])
    dtypes = tuple(dict.fromkeys([*_names(leaves), "bool"]))
    grower = Grower(rng, dtypes)
    grower.leaves, grower.pool = [], []
    assumed = {v.operands[0] for v in postorder([left]) if v.op.name == "assume"}
    mapping = {v: grower.leaf(v.type) if v in assumed else _operand(rng, grower, v) for v in leaves}
    (value,) = replace([left], mapping)
    grower.pool += [value, value]
    if rng.random() < 0.7:
        grower.grow(int(rng.integers(1, 6)))
    return _finished(f"rules:{seed}:{r.name}", rng, grower, [value] if rng.random() < 0.8 else [])


def _operand(rng: np.random.Generator, grower: Grower, v: Value) -> Value:
    """Something for a variable of a rule: an input, one that another variable has, or a computed value."""
    same = [x for x in grower.pool if x.type is v.type]
    if same and rng.random() < 0.15:
        return one_of(rng, same)
    x = grower.leaf(v.type)
    if v.dtype.kind != "f" or rng.random() < 0.5:
        return x
    forms = [lambda: lookup("exp")(x), lambda: lookup("abs")(x) + 0.5, lambda: lookup("neg")(x),
             lambda: x * grower.like(x.type), lambda: lookup("sigmoid")(x), lambda: lookup("maximum")(x, 0.0 * x),
             lambda: lookup("tanh")(x), lambda: x + 1.0]
    try:
        return one_of(rng, forms)()
    except MISTAKES:
        return x


# --- loops ------------------------------------------------------------------------------------------------------------


@generator("loops")
def loops(seed: int, aim: str = "") -> Program:
    """Loops and branches in one another."""
    from symc.testing.loop_checks import source
    from symc.testing.loops import random_program

    p = random_program(seed, smooth=seed % 3 == 0)
    data = tuple(tuple(p.arrays(n, k)) for k, n in enumerate((3, 1, 0, 4)))
    return Program(f"loops:{seed}", source(p), data, source=p)


__all__ = ["STYLES", "aimed_rules", "sampled_ops"]
