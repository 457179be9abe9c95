"""Facts of values: whatever is claimed holds of the numbers that are computed."""

import itertools
import warnings

import numpy as np
import pytest

from symc.ir.dim import Dim, size_name
from symc.ir.op import all_ops, lookup, splat
from symc.ir.ops.assume import promised
from symc.ir.ops.elementwise import EDGES
from symc.ir.ops.leaf import array, iota
from symc.ir.ops.linalg import dot, matmul
from symc.ir.ops.shape import broadcast, transpose
from symc.ir.reference import run_values
from symc.ir.size_values import evaluate
from symc.ir.types import DTYPES, TensorType, TupleType
from symc.ir.value import fresh_input
from symc.opt.facts.analysis import Analysis
from symc.opt.facts.derive import TRANSFER
from symc.opt.facts.fact import Fact, both, either, implies

OPS = {op.name: op for op in all_ops()}


def leaf(dtype="f64", *shape):
    return fresh_input(TensorType(dtype, shape))


def end(x, sizes):
    return evaluate(x, sizes) if isinstance(x, Dim) else x


def broken(f: Fact, a: np.ndarray, sizes=()) -> str:
    """The first claim of ``f`` that does not hold of an array, or an empty string."""
    a, sizes = np.asarray(a), dict(sizes)
    if not a.size:
        return ""
    inexact = a.dtype.kind in "fc"
    nan = np.isnan(a) if inexact else np.zeros(a.shape, bool)
    some = a[~nan]
    claims = {
        "nan": f.nan or not nan.any(),
        "inf": f.inf or not (inexact and np.isinf(a).any()),
        "zero": f.zero or not (a == 0).any(),
        "low": f.low is None or bool((some >= end(f.low, sizes)).all()),
        "high": f.high is None or bool((some <= end(f.high, sizes)).all()),
        "integer": not f.integer or not inexact or bool((np.trunc(some) == some)[np.isfinite(some)].all()),
        **{p: holds(p, a) for p in f.props},
    }
    return next((name for name, ok in claims.items() if not ok), "")


def holds(prop: str, a: np.ndarray) -> bool:
    """Whether an array has a structure, up to rounding."""
    if prop == "unique":
        return all(len(set(row)) == len(row) for row in a.reshape(-1, a.shape[-1]).tolist()) if a.ndim else True
    if prop == "sorted":
        return bool((a[..., 1:] >= a[..., :-1]).all()) if a.ndim else True
    a = a.astype("c16" if a.dtype.kind == "c" else "f8").reshape(-1, *a.shape[-2:])
    if not np.isfinite(a).all():
        return True  # structure is that of finite matrices
    return all(_matrix_holds(prop, m) for m in a)


def _matrix_holds(prop, m):
    scale = 1e-5 * (1 + np.abs(m).max())
    tests = {
        "symmetric": lambda: np.allclose(m, m.T, atol=scale),
        "hermitian": lambda: np.allclose(m, m.conj().T, atol=scale),
        "psd": lambda: np.linalg.eigvalsh((m + m.conj().T) / 2).min() >= -scale,
        "pd": lambda: np.linalg.eigvalsh((m + m.conj().T) / 2).min() > -scale,
        "lower": lambda: not np.triu(m, 1).any(),
        "upper": lambda: not np.tril(m, -1).any(),
        "diagonal": lambda: not (m - np.diag(np.diagonal(m))).any(),
        "unit": lambda: (np.diagonal(m) == 1).all(),
        "identity": lambda: np.array_equal(m, np.eye(*m.shape)),
        "permutation": lambda: ((m == 0) | (m == 1)).all() and (m.sum(0) == 1).all() and (m.sum(1) == 1).all(),
        "orthogonal": lambda: np.allclose(m @ m.conj().T, np.eye(len(m)), atol=1e-4),
    }
    return bool(tests[prop]())


def check(roots, env, sizes=()):
    """All claims about everything ``roots`` are made of."""
    from symc.ir.traverse import postorder

    facts = Analysis()
    values = [v for v in postorder(roots) if not isinstance(v.type, TupleType)]
    arrays = run_values(values, dict(env), dict(sizes))
    for v, a in zip(values, arrays, strict=True):
        wrong = broken(facts(v), a, sizes)
        assert not wrong, f"{v.op.name}{dict(v.attrs.items())}: {wrong} of {facts(v)} is not so: {a}"


# --- every op, on its own samples -------------------------------------------------------------------------------------

SAMPLED = [op for op in all_ops() if op.samples is not None and not op.traits & {"effect"}]


@pytest.mark.parametrize("op", SAMPLED, ids=[op.name for op in SAMPLED])
def test_claims_about_every_op_hold_on_its_samples(op):
    """Operands are constants, of which much is known, and inputs, of which nothing is."""
    for arrays, attrs in itertools.islice(op.samples(), 24):
        arrays = [np.asarray(a) for a in arrays]
        regions = attrs.get("regions", ())
        rest = {k: v for k, v in attrs.items() if k != "regions"}
        for constant in (True, False):
            leaves = [array(a) if constant else leaf(a.dtype, *a.shape) for a in arrays]
            v = op(*leaves, regions=regions, **rest)
            roots = [v[k] for k in range(len(v.type.items))] if isinstance(v.type, TupleType) else [v]
            check(roots, {} if constant else dict(zip(leaves, arrays, strict=True)))


def bounded_pairs(op):
    """Constants of one sign, or in a small interval: operands that allow narrow claims."""
    numbers = np.array(EDGES["f"])
    groups = [numbers[numbers > 0], numbers[numbers < 0], numbers[np.abs(numbers) < 2], numbers[numbers >= 1],
              np.array([0.0, 1.0, 3.0]), np.array([-0.0, 0.0]), np.array([2.0]), np.array([1e-200, 1e200])]
    arity = 1 if op.lowering and _unary(op) else 2
    return itertools.product(groups, repeat=arity)


def _unary(op):
    (arrays, _), *_ = itertools.islice(op.samples(), 1)
    return len(arrays) == 1


ELEMENTWISE = [op for op in SAMPLED if "elementwise" in op.traits and "f" in op.facts.kinds
               and op.name in TRANSFER and op.name != "where"]  # fmt: skip


@pytest.mark.parametrize("op", ELEMENTWISE, ids=[op.name for op in ELEMENTWISE])
def test_claims_from_narrow_operands_hold(op):
    for groups in bounded_pairs(op):
        for dtype in ("f8", "f4"):
            with np.errstate(all="ignore"):
                grid = np.array(list(itertools.product(*groups))).astype(dtype)
            given = [Analysis()(array(g.astype(dtype))) for g in groups]
            leaves = [leaf(dtype, len(grid)) for _ in groups]
            attrs = next(iter(op.samples()))[1]
            v = op(*leaves, **attrs)
            f = Analysis(dict(zip(leaves, given, strict=True)))(v)
            (out,) = run_values([v], dict(zip(leaves, grid.T, strict=True)), {})
            wrong = broken(f, out)
            assert not wrong, f"{op.name} of {groups}: {wrong} of {f} is not so: {out}"


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("op", ELEMENTWISE, ids=[op.name for op in ELEMENTWISE])
def test_no_range_makes_numpy_warn(op, dtype):
    """Not even one that ends at the greatest number; a user may have made warnings errors."""
    top, least = float(np.finfo(dtype).max), float(np.finfo(dtype).smallest_subnormal)
    ranges = [Fact(a, b) for a, b in itertools.combinations([-np.inf, -top, -1.0, -least, 0.0, 1.0, top, np.inf], 2)]
    arity = 1 if _unary(op) else 2
    attrs = next(iter(op.samples()))[1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for given in itertools.product(ranges[:: 1 if arity == 1 else 3], repeat=arity):
            leaves = [leaf(dtype, 3) for _ in given]
            Analysis(dict(zip(leaves, given, strict=True)))(op(*leaves, **attrs))


# --- random programs --------------------------------------------------------------------------------------------------

SMOOTH = [op for op in ELEMENTWISE if op.facts.result == "same" and not next(iter(op.samples()))[1]]
UNARY = [op for op in SMOOTH if _unary(op)]
BINARY = [op for op in SMOOTH if not _unary(op)]


@pytest.mark.parametrize("seed", range(60))
def test_claims_about_random_programs_hold(seed):
    rng = np.random.default_rng(seed)
    dtype = ("f8", "f4")[seed % 2]
    numbers = np.array([*EDGES["f"], 0.1, -0.3, 2.0, 7.0, -1e3, 1e5]).astype(dtype)
    x, y = leaf(dtype, 4, 4), leaf(dtype, 4, 4)
    pool = [x, y, iota(shape=(4, 4), axis=1, dtype=np.dtype(dtype))]
    pool += [splat(n, x.type) for n in (0, 1, -1, 2, 0.5)]
    for _ in range(40):
        a, b, c = (pool[rng.integers(len(pool))] for _ in range(3))
        k = rng.integers(8)
        if k < 3:
            new = rng.choice(UNARY)(a)
        elif k < 6:
            new = rng.choice(BINARY)(a, b)
        elif k == 6:
            test = lookup(rng.choice(["lt", "le", "gt", "ge", "ne", "eq"]))(a, b if rng.random() < 0.4 else pool[3])
            new = lookup("where")(test, a, c)
        else:
            rows = lookup(rng.choice(["sum", "max", "prod", "norm", "logsumexp"]))(a, axes=(1,))
            new = broadcast(rows, axes=(0,), shape=(4, 4)) if rng.random() < 0.7 else transpose(a, perm=(1, 0))
        pool.append(new)
    draws = [rng.choice(numbers, (4, 4)), rng.normal(size=(4, 4)).astype(dtype)]
    for p in draws:
        check(pool, {x: p, y: rng.permuted(draws[0])})


@pytest.mark.parametrize("seed", range(30))
def test_claims_about_random_programs_of_integers_hold(seed):
    rng = np.random.default_rng(seed)
    n = size_name("n")
    x = leaf("i64", n)
    pool = [x, iota(shape=(n,), axis=0, dtype=DTYPES["i64"])]
    pool.append(broadcast(lookup("size")(value=n), axes=(), shape=(n,)))
    pool += [splat(k, x.type) for k in (0, 1, -2, 3, 2**62)]
    names = ["add", "sub", "mul", "floordiv", "mod", "fmod", "minimum", "maximum", "and", "pow"]
    for _ in range(30):
        a, b, c = (pool[rng.integers(len(pool))] for _ in range(3))
        k = rng.integers(4)
        if k < 2:
            new = lookup(rng.choice(names))(a, b)
        elif k == 2:
            new = lookup(rng.choice(["neg", "abs", "sign"]))(a)
        else:
            new = lookup("where")(lookup(rng.choice(["lt", "ge", "eq"]))(a, b), a, c)
        pool.append(new)
    for size in (1, 5):
        check(pool, {x: rng.integers(-9, 9, size)}, {"n": size})
        check(pool, {x: rng.choice([-(2**63), 2**63 - 1, 0, 1], size)}, {"n": size})


MATRIX_OPS = ("add", "sub", "mul", "maximum", "div")


@pytest.mark.parametrize("seed", range(40))
def test_claims_about_random_matrices_hold(seed):
    rng = np.random.default_rng(seed)
    square = TensorType("f64", (4, 4))
    x, d = leaf("f64", 4, 4), leaf("f64", 4)
    row, column = (iota(shape=(4, 4), axis=k, dtype=DTYPES["i64"]) for k in (0, 1))
    zero, where = splat(0.0, square), lookup("where")
    eye = lookup("cast")(lookup("eq")(column, row), dtype=np.dtype("f8"))
    line = broadcast(lookup("abs")(d) + 1, axes=(1,), shape=(4, 4))
    pool = [x, eye, where(lookup("eq")(row, column), line, zero), where(lookup("le")(column, row), x, zero),
            where(lookup("ge")(column, row), x, zero), matmul(transpose(x, perm=(1, 0)), x),
            array(np.eye(4)[[2, 0, 1, 3]]), splat(2.0, square), broadcast(d, axes=(0,), shape=(4, 4)),
            broadcast(d, axes=(1,), shape=(4, 4)), array(np.diag([1.0, 2, 3, 4])), array(np.full((4, 4), -1.0))]
    for _ in range(25):
        a, b = (pool[rng.integers(len(pool))] for _ in range(2))
        k = rng.integers(5)
        if k == 0:
            new = transpose(a, perm=(1, 0))
        elif k == 1:
            contract = ((int(rng.integers(2)),), (int(rng.integers(2)),))
            new = dot(a, b if rng.random() < 0.6 else a, contract=contract, batch=((), ()))
        elif k == 2:
            new = lookup(rng.choice(["neg", "abs", "tanh", "sqrt", "exp", "floor"]))(a)
        else:
            new = lookup(rng.choice(MATRIX_OPS))(a, b if rng.random() < 0.7 else transpose(a, perm=(1, 0)))
        pool.append(new)
    with np.errstate(all="ignore"):
        check(pool, {x: rng.normal(size=(4, 4)), d: rng.normal(size=4)})


# --- the lattice ------------------------------------------------------------------------------------------------------

FACTS = [Fact(), Fact(0.0), Fact(0.0, 1.0, False, False), Fact(-1.0, None, True, False), Fact(1.0, 2.0, zero=False),
         Fact(0, size_name("n") - 1, False, False, integer=True), Fact(props=frozenset({"lower"}))]  # fmt: skip


@pytest.mark.parametrize("pair", list(itertools.product(FACTS, FACTS)))
def test_both_says_more_than_each_and_either_less(pair):
    a, b = pair
    if not any(isinstance(e, Dim) for f in pair for e in (f.low, f.high)) or a is b:
        assert implies(both(a, b), a) and implies(both(a, b), b)
    lower = either([a, b])
    assert implies(a, lower) and implies(b, lower)


SAME = [op for op in all_ops() if op.facts.same and (op.name == "tap" or "elementwise" in op.traits)]


@pytest.mark.parametrize("op", SAME, ids=lambda op: op.name)
def test_what_gives_its_first_operand_keeps_structure(op):
    attrs = next(iter(op.samples()))[1]
    made = op(promised(fresh_input(TensorType("f64", (3, 3))), "symmetric"), **attrs)
    assert Analysis()(made).has("symmetric")


def test_nothing_known_says_nothing():
    f = Analysis()(leaf("f64", 3))
    assert not (f.positive or f.nonnegative or f.negative or f.nonpositive or f.nonzero or f.finite or f.integer)
    assert f.low is None and f.high is None and not f.props


def test_underflow_is_not_positive():
    x = leaf("f64", 3)
    f = Analysis()(lookup("exp")(x))
    assert f.nonnegative and not f.positive
    assert Analysis()(lookup("exp")(x) + 1).positive


@pytest.mark.parametrize("name", ["sup", "max"])
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
def test_less_than_the_greatest(name, axes):
    """x minus its greatest element, 0 instead of -inf or not, is never positive; minus another's it may be."""
    x, y, facts = leaf("f64", 3, 4), leaf("f64", 3, 4), Analysis()
    top, kept = OPS[name](x, axes=axes), tuple(a for a in range(2) if a not in axes)
    shift = OPS["where"](OPS["eq"](top, splat(-np.inf, top.type)), splat(0.0, top.type), top)
    wrong = OPS["where"](OPS["isfinite"](top), top, splat(0.0, top.type))
    for t, known in ((top, True), (shift, True), (wrong, False), (OPS["min"](x, axes=axes), False)):
        wide = broadcast(t, axes=kept, shape=(3, 4))
        assert facts(x - wide).nonpositive == known and facts(wide - x).nonnegative == known
        assert not facts(y - wide).nonpositive and not facts(x - wide).nonnegative
    square = leaf("f64", 3, 3)
    across = broadcast(OPS[name](square, axes=(0,)), axes=(0,), shape=(3, 3))
    assert not facts(square - across).nonpositive, "repeated along the other axis"
    rows = np.array([[1.0, -np.inf, np.nan, 3], [-np.inf, -np.inf, 0, 2], [np.inf, -np.inf, 1, -1]])
    wide = broadcast(shift, axes=kept, shape=(3, 4))
    with np.errstate(all="ignore"):
        (found,) = run_values([x - wide], {x: rows}, {})
    assert not broken(facts(x - wide), found)


@pytest.mark.long
def test_facts_are_linear_in_the_graph():
    """A chain whose values share everything below: each is asked about once."""
    facts = Analysis()
    v = leaf("f64", 3)
    for _ in range(20_000):
        v = lookup("abs")(v) + v
        facts(v)
    assert len(facts.known) == 40_001
