"""`compile(max_bytes=)`: the numbers stay, and the plan takes no more than was asked for, or the error says why."""

import pickle
import tracemalloc

import numpy as np
import pytest

import symc as sc
from symc.codegen.plan.budget import Budget, fit
from symc.codegen.plan.check_plan import check_plan
from symc.codegen.plan.memory import memory
from symc.codegen.plan.planner import make_plan
from symc.errors import InputError, MemoryBudgetError, PlanError
from symc.ir.reference import evaluate_function
from symc.ir.types import TensorType
from symc.ir.value import fresh_input
from symc.ir.verify import verify
from symc.opt import optimize
from symc.opt.loops.chunks import pairs
from symc.opt.loops.rows import row_op
from symc.tensors import pytree as nest

RNG = np.random.default_rng(7)


def flat(results):
    return [np.asarray(r) for r in nest.flatten(results)[0]]


def count(f, op):
    return sum(v.op.name == op for v in f._compilation.final.values())


def chain(kind, steps, size):
    """A long chain and its gradient: elementwise or curves on a vector, or products on a matrix."""
    if kind != "products":
        x = h = sc.input("x", "float64", shape=(size,))
        for _ in range(steps):
            h = sc.tanh(h * 1.01 + 0.5) if kind == "curves" else 1 / (h * h + 1.5)  # of little code
        return [x], [sc.grad(sc.sum(h), x)], [RNG.normal(size=size)]
    x = h = sc.input("x", "float64", shape=(size, size))
    w = sc.input("w", "float64", shape=(size, size))
    for _ in range(steps):
        h = sc.tanh(h @ w)
    data = [RNG.normal(size=(size, size)), RNG.normal(size=(size, size)) / size**0.5]
    return [x, w], sc.grad(sc.sum(h), [x, w]), data


def again_steps(f):
    """How many steps of the plan run for the second time (copies of a step are told by what they compute)."""
    return len(f._compilation.plan.steps)


def agree(f, g, data):
    for got, want in zip(flat(f(*data)), flat(g(*data)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("kind", "steps", "size"), [("elementwise", 300, 500), ("products", 100, 16)])
def test_a_long_chain_in_about_the_root_of_its_memory(kind, steps, size):
    ins, outs, data = chain(kind, steps, size)
    full = sc.compile(outs, ins)
    array = data[0].nbytes
    assert full.memory() > 0.8 * steps * array  # the last steps share a kernel with their gradient
    small = sc.compile(outs, ins, max_bytes=int(7 * steps**0.5) * array)
    assert small.memory() <= int(7 * steps**0.5) * array
    check_plan(small._compilation.plan)
    agree(small, full, data)
    assert again_steps(small) < 2 * again_steps(full)  # nothing runs a third time


def test_less_memory_never_costs_less():
    ins, outs, data = chain("products", 36, 12)
    full = sc.compile(outs, ins)
    steps = [again_steps(full)]
    for share in (0.9, 0.75, 0.6, 0.45, 0.3):
        bound = int(full.memory() * share)
        f = sc.compile(outs, ins, max_bytes=bound)
        assert f.memory() <= bound
        agree(f, full, data)
        steps.append(again_steps(f))
    assert steps == sorted(steps) and steps[-1] > steps[0]


def test_a_budget_that_is_met_changes_nothing():
    ins, outs, _ = chain("products", 5, 8)
    full = sc.compile(outs, ins)
    same = sc.compile(outs, ins, max_bytes=int(full.memory()))
    assert same.dump() == full.dump() and "max_bytes" not in same.stages


def test_what_a_call_takes_is_within_the_budget():
    ins, outs, data = chain("curves", 100, 20_000)
    full = sc.compile(outs, ins)
    bound = int(full.memory() * 0.5)
    f = sc.compile(outs, ins, max_bytes=bound)
    assert f.memory() <= bound
    f(*data)
    tracemalloc.start()
    out = f._call_path.call(*data)  # by another frame than the entry's, whose arena is allocated anew
    took = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert flat(out)[0].shape == data[0].shape
    assert took + data[0].nbytes <= bound * 1.02
    assert took > 20 * data[0].nbytes  # the measure measures


def mlp(depth, size=24):
    x = sc.input("x", "float32", shape=("n", size))
    y = sc.input("y", "float32", shape=("n", size))
    params = [(sc.shared(RNG.normal(size=(size, size)).astype("float32") / 5, f"w{k}"),
               sc.shared(np.zeros(size, "float32"), f"b{k}")) for k in range(depth)]
    h = x
    for w, b in params:
        h = sc.maximum(h @ w + b, 0) * 0.2 + h * 0.8
    loss = sc.mean((h - y) ** 2)
    states = [p for pair in params for p in pair]
    updates = {p: p - 0.01 * g for p, g in zip(states, sc.grad(loss, states), strict=True)}
    return [x, y], loss, updates, states


def test_training_a_network_of_24_layers():
    ins, loss, updates, states = mlp(24)
    start = [s.get_value() for s in states]
    data = [RNG.normal(size=(256, 24)).astype("float32") for _ in range(2)]
    runs = []
    full = None
    for share in (None, 0.5):
        for s, value in zip(states, start, strict=True):
            s.set_value(value)
        bytes_ = None if share is None else (int(full.memory(n=256) * share), {"n": 256})
        f = sc.compile(loss, ins, updates=updates, max_bytes=bytes_)
        full = full or f
        if bytes_:
            assert f.memory(n=256) <= bytes_[0]
        runs.append([float(f(*data)) for _ in range(3)] + [s.get_value() for s in states])
    for got, want in zip(*runs, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-5)
    assert runs[0][2] < runs[0][0]


def test_impossible_says_what_takes_most():
    ins, outs, data = chain("products", 40, 16)
    with pytest.raises(MemoryBudgetError) as e:
        sc.compile(outs, ins, max_bytes=10 * data[0].nbytes)
    text = str(e.value)
    assert isinstance(e.value, PlanError)
    assert f"{10 * data[0].nbytes:,} bytes are not enough: the lowest peak that was found is" in text
    assert "h = sc.tanh(h @ w)" in text and "2,048 bytes, steps" in text
    lowest = int(text.rpartition("max_bytes=")[2].partition(" ")[0])
    assert sc.compile(outs, ins, max_bytes=lowest).memory() <= lowest


def test_inputs_and_results_that_do_not_fit():
    x = sc.input("x", "float64", shape=(1000,))
    with pytest.raises(MemoryBudgetError, match="inputs, states, constants and results alone take 16,000"):
        sc.compile(x * 2, [x], max_bytes="10 kB")


def test_sizes():
    x = sc.input("x", "float64", shape=("n",))
    h = x
    for _ in range(120):
        h = 1 / (h * h + 1.5)
    g = sc.grad(sc.sum(h), x)
    f = sc.compile(g, [x], max_bytes=("400 kB", {"n": 1000}))
    assert f.memory(n=1000) <= 400_000 < sc.compile(g, [x]).memory(n=1000)
    agree(f, sc.compile(g, [x]), [RNG.normal(size=7)])


@pytest.mark.parametrize(("given", "text"), [
    (0, "max_bytes must be a number of bytes, not 0"),
    ("many", "max_bytes must be a number of bytes, not 'many'"),
    (10**6, 'say for which sizes it must hold: max_bytes=(1000000, {"n": 1000})'),
    ((10**6, {"m": 3}), "f has no size 'm'"),
    ((10**6, {"n": -1}), "not {'n': -1}"),
])  # fmt: skip
def test_mistakes_in_max_bytes(given, text):
    x = sc.input("x", "float64", shape=("n",))
    with pytest.raises(InputError) as e:
        sc.compile(x + 1, [x], max_bytes=given)
    assert text in str(e.value) and "test_max_bytes.py" in str(e.value)


def test_modes_without_a_plan_have_no_budget():
    x = sc.input("x", "float64", shape=(3,))
    with pytest.raises(InputError, match="runs without a memory plan"):
        sc.compile(x + 1, [x], max_bytes=100, mode="reference")
    ins, outs, data = chain("products", 12, 8)
    f = sc.compile(outs, ins, mode="debug", max_bytes=14 * data[0].nbytes)  # every stage against the reference
    agree(f, sc.compile(outs, ins), data)


def test_saved_functions_keep_their_budget():
    ins, outs, data = chain("products", 20, 8)
    full = sc.compile(outs, ins)
    f = sc.compile(outs, ins, max_bytes=int(full.memory() * 0.6))
    g = pickle.loads(pickle.dumps(f))
    assert g.memory() == f.memory() < full.memory() and g.dump() == f.dump()
    agree(g, full, data)


def test_a_plan_is_the_same_in_every_run():
    ins, outs, _ = chain("products", 25, 8)
    final = sc.compile(outs, ins)._compilation.final
    whole = memory(make_plan(final), {})
    texts = {str(fit(final, frozenset(), Budget(int(whole * 0.5)))[0]) for _ in range(2)}
    assert len(texts) == 1 and "again" in texts.pop()


# --- loops ------------------------------------------------------------------------------------------------------------


def rnn(steps, size, reverse=False):
    x = sc.input("x", "float64", shape=(steps, size))
    h0 = sc.input("h", "float64", shape=(size,))
    w = sc.input("w", "float64", shape=(size, size))
    last, _ = sc.scan(lambda h, r: (sc.tanh(h @ w + r), h), h0, x, reverse=reverse)
    data = [RNG.normal(size=(steps, size)), RNG.normal(size=size), RNG.normal(size=(size, size)) / size**0.5]
    return [x, h0, w], sc.grad(sc.sum(last), [h0, w]), data


def lstm(steps, batch, size, reverse, layers=2):
    x = seq = sc.input("x", "float64", shape=(steps, batch, size))
    shapes = [(size, 4 * size), (size, 4 * size), (4 * size,)] * layers
    params = [sc.input(f"p{k}", "float64", shape=s) for k, s in enumerate(shapes)]
    total = 0
    for k in range(layers):
        w, u, b = params[3 * k : 3 * k + 3]

        def step(state, row, w=w, u=u, b=b):
            h, c = state
            z = row @ w + h @ u + b
            i, f, o, g = (z[:, j * size : (j + 1) * size] for j in range(4))
            c = sc.sigmoid(f) * c + sc.sigmoid(i) * sc.tanh(g)
            h = sc.sigmoid(o) * sc.tanh(c)
            return (h, c), h

        (_, c), seq = sc.scan(step, (sc.zeros((batch, size)), sc.zeros((batch, size))), seq, reverse=reverse)
        total = total + sc.sum(c)
    loss = sc.mean(seq**2) + total
    data = [RNG.normal(size=(steps, batch, size)), *[RNG.normal(size=s) * 0.2 for s in shapes]]
    return [x, *params], [loss, *sc.grad(loss, params)], data


@pytest.mark.parametrize("reverse", [False, True])
def test_a_loop_of_1000_steps_in_chunks(reverse):
    ins, outs, data = rnn(1000, 8, reverse)
    full = sc.compile(outs, ins)
    stack = 1000 * 8 * 8
    fixed = sum(a.nbytes for a in data) + data[1].nbytes + data[2].nbytes
    assert full.memory() > fixed + 2 * stack
    small = sc.compile(outs, ins, max_bytes=fixed + stack // 4)
    assert small.memory() <= fixed + stack // 4
    check_plan(small._compilation.plan)
    agree(small, full, data)
    assert small.dump().count("scan ") > full.dump().count("scan ")


@pytest.mark.parametrize("reverse", [False, True])
def test_layers_of_loops_in_chunks(reverse):
    ins, outs, data = lstm(60, 4, 8, reverse)
    full = sc.compile(outs, ins)
    taken = []
    for share in (0.8, 0.5):
        small = sc.compile(outs, ins, max_bytes=int(full.memory() * share))
        check_plan(small._compilation.plan)
        agree(small, full, data)
        taken.append(small.memory())
    assert taken[1] <= full.memory() * 0.5 < taken[0] <= full.memory() * 0.8


def test_what_is_wanted_whole_stays_whole():
    """Stacks that are results are not taken apart."""
    ins, outs, _ = rnn(40, 8)
    x, h0, w = ins
    _, ys = sc.scan(lambda h, r: (sc.tanh(h @ w + r), h), h0, x)
    found = [pairs(sc.compile(o, ins)._compilation.final) for o in (outs, [*outs, ys])]
    assert [len(p) for p in found] == [1, 1]
    assert len(found[1][0].stacks) == len(found[0][0].stacks) - 1


def test_row_ops_on_some_rows():
    """Kernels are row-wise when every value has its steps in front; broadcasts along the steps have none."""
    x, b = sc.input("x", "float64", shape=(6, 3)), sc.input("b", "float64", shape=(3,))
    t = sc.input("t", "float64", shape=(6,))
    final = sc.compile([sc.tanh(x + b) * 2], [x, b])._compilation.final
    (op,) = [row_op(v, 6) for v in final.values() if v.op.name == "fused"]
    assert op is not None and not op.total and op.row_operands == [final.params[0]]
    (part,) = op.on([fresh_input(TensorType("f64", (2, 3))) if o is op.row_operands[0] else o
                     for o in op.value.operands], 2)  # fmt: skip
    assert part.shape == (2, 3)
    total = sc.compile(sc.sum(x * t[:, None], axis=0), [x, t])._compilation.final
    assert [row_op(v, 6).total for v in total.values() if v.op.name == "fused"] == [True]
    across = sc.compile(sc.sum(x * t[:, None], axis=1), [x, t])._compilation.final
    assert [row_op(v, 6) for v in across.values() if v.op.name == "fused"] == [None]


# --- random programs --------------------------------------------------------------------------------------------------


def random_program(seed, steps):
    """Layers that read what came shortly before, some of them checkpointed; the gradient by every input."""
    r = np.random.default_rng(seed)
    x = sc.input("x", "float64", shape=("n", 6))
    v, w = (sc.input(name, "float64", shape=(6, 6)) for name in "vw")
    layers = [
        lambda a, b: sc.tanh(a @ v), lambda a, b: sc.sin(a), lambda a, b: a * b, lambda a, b: a + b,
        lambda a, b: sc.exp(a - sc.max(a, axis=1, keepdims=True)), lambda a, b: a - sc.mean(a, axis=0),
        lambda a, b: sc.concatenate([a[:, :3], b[:, 3:]], axis=1), lambda a, b: (a.T * 0.5).T @ w,
        lambda a, b: sc.maximum(a, b) * 0.9,
    ]  # fmt: skip
    pool = [x]
    for _ in range(steps):
        a, b = (pool[max(0, len(pool) - 1 - int(r.integers(0, 4)))] for _ in range(2))
        y = layers[int(r.integers(0, len(layers)))](a, b)
        pool.append(sc.checkpoint(lambda t: sc.tanh(sc.sin(t) @ w))(y) if r.random() < 0.1 else y)
    cost = sc.mean(pool[-1] ** 2) + sc.mean(sc.sin(pool[len(pool) // 2]))
    return [x, v, w], [cost, *sc.grad(cost, [x, v, w], disconnected="zero")]


@pytest.mark.parametrize("seed", range(8))
def test_random_programs_within_budgets(seed):
    ins, outs = random_program(seed, 25)
    f = sc.compile(outs, ins, mode="reference")._built.function
    final = optimize(f).function
    sizes = {"n": 64}
    whole = memory(make_plan(final), sizes)
    data = [RNG.normal(size=(5, 6)), *[RNG.normal(size=(6, 6)) * 0.4 for _ in range(2)]]
    want = evaluate_function(final, data)
    fitted = 0
    for share in (0.9, 0.75, 0.6, 0.45):
        try:
            g, plan = fit(final, frozenset(), Budget(int(whole * share), sizes))
        except MemoryBudgetError:
            break
        fitted += 1
        verify(g)
        check_plan(plan)
        assert memory(plan, sizes) <= int(whole * share)
        for got, expected in zip(evaluate_function(g, data), want, strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-12)
    assert fitted >= 1


def test_a_late_result_is_made_of_what_is_kept():
    """`1 - tanh(z)**2` is needed in the backward pass alone, and is arithmetic on a value that is there then."""
    ins, outs, data = chain("products", 30, 16)
    full = sc.compile(outs, ins)
    assert full.memory() > 2 * 30 * data[0].nbytes  # h and 1 - h**2 of every step
    small = sc.compile(outs, ins, max_bytes=int(full.memory() * 0.75))
    agree(small, full, data)
    assert small.memory() <= full.memory() * 0.75
    assert count(small, "dot") == count(full, "dot")  # no product runs twice
