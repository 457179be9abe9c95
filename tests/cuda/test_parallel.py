"""Functions on several devices: what each rank computes, what is joined, what is the same on all. On emulated ranks."""

from __future__ import annotations

import numpy as np
import pytest

import symc as sc
from symc.errors import DeviceError, DTypeError, InputError, ShapeError
from symc.ir.ops.collective import all_reduce
from symc.ir.traverse import every_value
from symc.opt.facts.ranks import for_ranks
from symc.runtime.cuda.ranks import RankArrays
from symc.testing import emulated_cuda
from tests.cuda.emulated import needs_compiler

pytestmark = needs_compiler
TWO = ("cuda:0", "cuda:1")
THREE = (*TWO, "cuda:2")


@pytest.fixture(scope="module", autouse=True)
def devices():
    with emulated_cuda(checked=False):
        yield


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def training(device, split=(), width: int = 8):
    """A training step on the mean of a batch, and its states."""
    x, y = sc.input("x", "float32", ("n", width)), sc.input("y", "float32", ("n", width))
    ws = [sc.shared(numbers(width, width, seed=k) / width**0.5, f"w{k}") for k in range(3)]
    h = x
    for w in ws:
        h = sc.tanh(h @ w)
    loss = sc.parallel.all_reduce(sc.mean((h - y) ** 2), "mean")
    grads = [sc.parallel.all_reduce(g, "mean") for g in sc.grad(loss, ws)]
    return sc.compile([loss, h], [x, y], updates={w: w - 0.1 * g for w, g in zip(ws, grads)}, device=device,
                      split=split, name="step"), ws


def same_on_all(w: sc.SharedVariable) -> bool:
    first, *others = [part.numpy().tobytes() for part in w.array.parts]
    return all(o == first for o in others)


def counted(f) -> list[dict[str, int]]:
    return [dict(vars(c.device.counters)) for c in f._program.group.contexts]


@pytest.mark.parametrize("names, split", [(TWO, "n"), (THREE, ("n",))])
def test_ranks_compute_what_one_does(names, split):
    (step, ws), (whole, wholes) = training(names, split), training("cpu")
    x, y = numbers(12, 8), numbers(12, 8, seed=7)
    for _ in range(5):
        (loss, h), (want, all_h) = step(x, y), whole(x, y)
        np.testing.assert_allclose(float(loss), want, rtol=1e-5)
        assert h.split and not loss.split and len({p.item() for p in loss.parts}) == 1
        np.testing.assert_allclose(h.numpy(), all_h, rtol=1e-4, atol=1e-6)
    assert all(map(same_on_all, ws))
    for w, other in zip(ws, wholes):
        np.testing.assert_allclose(w.get_value(), other.get_value(), rtol=1e-4, atol=1e-6)


def test_a_size_that_a_text_named_first():
    sc.parse("func @g(%x: f32[of_text, 8]) -> (f32[of_text, 8]) {\n  return %x\n}\n")
    x = sc.input("x", "float32", ("of_text", 8))
    f = sc.compile(x * 2, [x], device=TWO, split="of_text")
    np.testing.assert_array_equal(f(numbers(4, 8)).numpy(), 2 * numbers(4, 8))


def test_checked_ranks_whose_steps_run_side_by_side():
    """Reductions have a stream of their own, in which all ranks come to them in the same order."""
    with emulated_cuda():
        (step, ws), (whole, wholes) = training(TWO, "n", 256), training("cpu", width=256)
        assert {s.lane for s in step._compilation.plan.steps} > {0}
        x, y = numbers(4, 256), numbers(4, 256, seed=7)
        for _ in range(4):
            np.testing.assert_allclose(float(step(x, y)[0]), whole(x, y)[0], rtol=1e-5)
        assert all(map(same_on_all, ws))
        np.testing.assert_allclose(ws[0].get_value(), wholes[0].get_value(), rtol=1e-3, atol=1e-5)
        for program in step._program.programs:
            (frame,) = program._frames.values()
            assert frame.lowered.lanes == 2 + max(s.lane for s in program.plan.steps)


def test_what_crosses_and_what_is_called():
    """One reduction for the loss and all gradients, which are small; half a batch for each rank, states once."""
    step, _ = training(TWO, "n")
    x, y = numbers(12, 8), numbers(12, 8, seed=7)
    step(x, y)
    before = counted(step)
    for _ in range(6):
        results = step(x, y)  # kept until the next ones are there: their memory comes in turns
    products = step.calls["gemm"]
    assert [v.op for v in step._compilation.plan.function.values()].count(all_reduce) == 1
    for was, now in zip(before, counted(step)):
        assert now["library_calls"] - was["library_calls"] == 6 * (products + 1)
        assert now["h2d_bytes"] - was["h2d_bytes"] == 6 * (x.nbytes + y.nbytes) // 2
        assert now["d2h_bytes"] == was["d2h_bytes"] and now["syncs"] == was["syncs"]
        assert now["graph_launches"] - was["graph_launches"] >= 3
    assert len({c["graph_launches"] for c in counted(step)}) == 1  # all ranks replay the same calls
    assert results[0].shape == () and results[1].shape == (12, 8)


@pytest.mark.parametrize("kind", ["add", "mean", "maximum", "minimum"])
def test_kinds(kind):
    x = sc.input("x", "float64", ("n", 4))
    joined = sc.parallel.all_reduce(sc.sum(x, axis=0), kind)
    f = sc.compile([joined, sc.parallel.all_reduce(sc.grad(sc.sum(joined**2), x), kind="mean")[0]], [x], device=THREE,
                   split="n")
    data = np.random.default_rng(0).normal(size=(6, 4))
    parts = data.reshape(3, 2, 4).sum(1)
    of = {"add": np.sum, "mean": np.mean, "maximum": np.max, "minimum": np.min}[kind]
    value = of(parts, axis=0)
    got, slope = f(data)
    np.testing.assert_allclose(got.numpy(), value, rtol=1e-12)
    # the mean over ranks of what each result owes to each: 2 * value, once a rank for sums, shared out for the others
    np.testing.assert_allclose(slope.numpy(), 2 * value * {"add": 3}.get(kind, 1), rtol=1e-12)


def test_equal_extremes_share_the_derivative():
    x = sc.input("x", "float64", ("n", 2))
    best = sc.parallel.all_reduce(sc.max(x, axis=0), "maximum")
    f = sc.compile(sc.grad(sc.sum(best), x), [x], device=TWO, split="n")
    got = f(np.array([[1.0, 5.0], [1.0, 2.0]])).numpy()
    np.testing.assert_array_equal(got, [[1, 2], [1, 0]])  # of the sum of both ranks' results


def test_a_loss_that_is_not_reduced_has_the_same_gradient():
    x, w = sc.input("x", "float32", ("n", 8)), sc.shared(numbers(8), "w")
    loss = sc.mean(sc.tanh(x @ w) ** 2)
    joined = sc.parallel.all_reduce(loss, "mean")
    both = [sc.parallel.all_reduce(sc.grad(of, w), "mean") for of in (loss, joined)]
    got = sc.compile(both, [x], device=TWO, split="n")(numbers(6, 8))
    want = sc.compile(sc.grad(loss, w), [x])
    w.to_device("cpu")
    for g in got:
        np.testing.assert_allclose(g.numpy(), want(numbers(6, 8)), rtol=1e-5, atol=1e-7)


def test_one_rank_reduces_nothing():
    x = sc.input("x", "float32", ("n", 4))
    y = sc.parallel.all_reduce(sc.mean(x, axis=0), "mean")
    for device in ("cpu", "cuda:1", ("cuda:1",)):
        f = sc.compile(y, [x], device=device, split="n")
        assert not any(v.op is all_reduce for v in f._compilation.final.values())
        np.testing.assert_allclose(np.asarray(f(numbers(6, 4)).tolist()), numbers(6, 4).mean(0), rtol=1e-6)
    np.testing.assert_allclose(sc.compile(y, [x], mode="reference")(numbers(6, 4)), numbers(6, 4).mean(0), rtol=1e-6)


def test_what_is_the_same_everywhere_is_not_sent():
    x, c = sc.input("x", "float32", ("n", 4)), sc.input("c", "float32", (4,))
    y = [sc.parallel.all_reduce(c * 2, kind) for kind in ("mean", "maximum", "add")]
    f = sc.compile([*y, x], [x, c], device=THREE, split="n")
    assert not any(v.op is all_reduce for v in every_value(f._compilation.final.body))
    got = f(numbers(3, 4), np.arange(4, dtype="float32"))
    np.testing.assert_array_equal([g.numpy() for g in got[:3]], np.arange(4) * np.array([[2], [2], [6]]))


def test_small_reductions_are_made_together():
    x, c = sc.input("x", "float32", ("n", 3)), sc.input("c", "float32", ("m",))
    reduce = sc.parallel.all_reduce
    total, best = reduce(sc.sum(x, axis=0)), reduce(sc.max(x), "maximum")
    square = reduce(sc.sum(x * x), "mean")  # with the total
    centred = reduce(sc.sum((x - total) ** 2))  # made of the total, so after it
    top = reduce(sc.max(x, axis=0), "maximum")  # with the best one
    many = reduce(sc.sum(x) * c)  # nobody knows how large
    large = [reduce(sc.sum(x) * sc.ones(20000, "float32") * k) for k in (1, 2)]
    outputs = [total, best, square, centred, top, many, *large]
    f = sc.compile(outputs, [x, c], device=TWO, split="n")
    made = for_ranks(f._built.function, 2, [0])
    shapes = sorted(str(v.type.shape) for v in made.values() if v.op is all_reduce)
    assert shapes == sorted(["(4,)", "(4,)", "()", "(m,)", "(20000,)", "(20000,)"])
    assert all(made.locations(v) for v in made.values() if v.op is all_reduce)
    data = numbers(4, 3)
    sums, ones = data.reshape(2, 2, 3), np.ones(20000)
    want = [data.sum(0), data.max(), (sums**2).sum((1, 2)).mean(), ((data - data.sum(0)) ** 2).sum(), data.max(0),
            data.sum() * np.arange(5), data.sum() * ones, 2 * data.sum() * ones]
    for got, right in zip(f(data, np.arange(5, dtype="float32")), want, strict=True):
        np.testing.assert_allclose(got.numpy(), right, rtol=1e-4, atol=1e-5)


def test_training_inside_a_loop():
    x, w = sc.input("x", "float32", ("n", 3)), sc.input("w", "float32", (3,))

    def step(k, c):
        return c - 0.1 * sc.parallel.all_reduce(sc.grad(sc.mean((x @ c - 1) ** 2), c), "mean")

    trained = sc.fori_loop(0, 5, step, w)
    f, whole = sc.compile(trained, [x, w], device=TWO, split="n"), sc.compile(trained, [x, w])
    got = f(numbers(6, 3), np.zeros(3, "float32"))
    assert not got.split
    np.testing.assert_allclose(got.numpy(), whole(numbers(6, 3), np.zeros(3, "float32")), rtol=1e-5)


def test_results_are_arguments_and_states_come_back():
    x, w = sc.input("x", "float32", ("n", 3)), sc.shared(numbers(3), "w")
    f = sc.compile(x * w, [x], device=TWO, split="n", transfers="explicit")
    once = f(numbers(4, 3))
    assert isinstance(once, RankArrays) and once.shape == (4, 3) and [p.shape for p in once.parts] == [(2, 3)] * 2
    assert repr(once) == "RankArrays(f32[4, 3], in parts on cuda:0, cuda:1)"
    np.testing.assert_allclose(f(once).numpy(), numbers(4, 3) * numbers(3) ** 2, rtol=1e-6)
    assert f(numbers(0, 3)).numpy().shape == (0, 3)
    on_host = sc.compile(x * w, [x])
    with pytest.raises(DeviceError, match="w is on cuda:0, cuda:1"):
        on_host(numbers(4, 3))
    with pytest.raises(DeviceError, match=r"compiled for cuda:0[^,]"):
        sc.compile(x * w, [x], device="cuda")(numbers(4, 3))
    w.to_device("cpu")
    on_host(numbers(4, 3))
    w.to_device("cuda:1")
    with pytest.raises(DeviceError, match=r"w is on cuda:1, the function was compiled for cuda:0, cuda:1"):
        f(numbers(4, 3))
    w.set_value(np.ones(3, "float32"))
    np.testing.assert_array_equal(f(numbers(4, 3)).numpy(), numbers(4, 3))


def test_automatic_transfers_saved_functions_and_what_is_kept(tmp_path):
    x, w = sc.input("x", "float32", ("n", 16)), sc.shared(numbers(16, 16), "w")
    f = sc.compile(x @ sc.exp(w @ w / 16), [x], device=TWO, split="n", transfers="auto")
    want = numbers(4, 16) @ np.exp(numbers(16, 16) @ numbers(16, 16) / 16)
    for g in (f, f):
        np.testing.assert_allclose(g(numbers(4, 16)), want, rtol=1e-4)
    f.save(tmp_path / "f")
    np.testing.assert_allclose(sc.load(tmp_path / "f")(numbers(4, 16)), want, rtol=1e-4)
    assert f.memory(numbers(4, 16)) == f.memory(n=2)  # of one rank


# --- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("device, split, why", [
    (("cuda:0", "cuda"), "n", "cuda:0 is listed twice"),
    (("cuda:0", "cpu"), "n", "the CPU and GPUs cannot share"),
    ([], "n", "an empty list of devices"),
    (TWO, (), "would all compute the same"),
    (TWO, "m", "f has no size 'm'"),
    (("cuda:0", "gpu"), "n", "unknown device 'gpu'"),
])
def test_devices_and_sizes_that_make_no_sense(device, split, why):
    x = sc.input("x", "float32", ("n", 3))
    with pytest.raises(InputError, match=why):
        sc.compile(x + 1, [x], device=device, split=split)


def test_results_that_would_differ():
    x, w = sc.input("x", "float32", ("n", 3)), sc.shared(numbers(3), "w")
    loss = sc.mean((x @ w) ** 2)
    with pytest.raises(InputError, match="the output would be another one on each of cuda:0, cuda:1") as e:
        sc.compile(loss, [x], device=TWO, split="n")
    assert "test_parallel.py" in str(e.value) and "all_reduce" in str(e.value)
    with pytest.raises(InputError, match="the new value of w would be another one"):
        sc.compile(sc.parallel.all_reduce(loss), [x], updates={w: w - sc.grad(loss, w)}, device=TWO, split="n")
    with pytest.raises(InputError, match="output 1 of f has parts of other sizes"):
        sc.compile([x, x.T], [x], device=TWO, split="n")


def test_sizes_that_are_not_split():
    x, y = sc.input("x", "float32", ("n", 3)), sc.input("y", "float32", (4, "n"))
    with pytest.raises(InputError, match="n is a size of an argument elsewhere than in its first axis"):
        sc.compile([x, y], [x, y], device=TWO, split="n")
    with pytest.raises(InputError, match="must be 6 in all calls"):
        sc.compile(x + numbers(6, 3), [x], device=TWO, split="n")
    with pytest.raises(InputError, match="cannot be donated"):
        sc.compile(x + 1, [x], device=TWO, split="n", donate=[x])


def test_reductions_that_some_ranks_would_not_come_to():
    x = sc.input("x", "float32", ("n", 3))
    total = sc.sum(x)

    def joined():
        return sc.parallel.all_reduce(total)

    with pytest.raises(InputError, match="all_reduce inside a cond that depends on one part"):
        sc.compile(sc.cond(total > 0, joined, lambda: total * 0), [x], device=TWO, split="n")
    loop = sc.while_loop(lambda c: c + total < 9, lambda c: sc.parallel.all_reduce(c + 1), sc.zeros((), "float32"))
    with pytest.raises(InputError, match="all_reduce inside a while that depends on one part"):
        sc.compile(loop, [x], device=TWO, split="n")
    chosen = sc.cond(sc.parallel.all_reduce(total, "maximum") > 0, joined, lambda: sc.zeros((), "float32"))
    data = numbers(4, 3)
    got = sc.compile(chosen, [x], device=TWO, split="n")(data)
    np.testing.assert_allclose(float(got), data.sum() if max(data[:2].sum(), data[2:].sum()) > 0 else 0, rtol=1e-5)


def test_a_reduction_is_not_moved_into_a_branch():
    """What one branch alone needs is computed there, but for what takes all ranks."""
    x, k = sc.input("x", "float32", ("n", 3)), sc.input("k", "bool", ())
    joined = sc.parallel.all_reduce(sc.sum(x, axis=0))
    f = sc.compile(sc.cond(k, lambda: sc.cumsum(joined), lambda: sc.zeros(3, "float32")), [x, k], device=TWO, split="n")
    assert any(v.op is all_reduce for v in f._compilation.final.values())
    np.testing.assert_allclose(f(numbers(4, 3), True).numpy(), np.cumsum(numbers(4, 3).sum(0)), rtol=1e-5)


def test_mistakes_in_a_call():
    x, y = sc.input("x", "float32", ("n", 3)), sc.input("y", "float32", ("n", 3))
    f = sc.compile(x + y, [x, y], device=TWO, split="n", name="f")
    with pytest.raises(ShapeError, match=r"x.shape\[0\] = 5 cannot be divided among 2 devices") as e:
        f(numbers(5, 3), numbers(5, 3))
    assert "give 4 rows, or 6" in str(e.value)
    with pytest.raises(ShapeError, match=r"y.shape\[0\] = 6 must equal x.shape\[0\] = 4"):
        f(numbers(4, 3), numbers(6, 3))
    with pytest.raises(InputError, match="y is an array on one device"):
        f(numbers(4, 3), sc.device_array(numbers(4, 3)))
    other = sc.compile(x + y, [x, y], device=("cuda:1", "cuda:0"), split="n")
    with pytest.raises(InputError, match="must be in parts of cuda:0, cuda:1"):
        f(numbers(4, 3), other(numbers(4, 3), numbers(4, 3)))
    with pytest.raises(InputError, match="out= has no meaning"):
        f(numbers(4, 3), numbers(4, 3), out=numbers(4, 3))
    with pytest.raises(InputError, match="cannot be profiled"):
        f.profile(numbers(4, 3), numbers(4, 3))
    with pytest.raises(InputError, match="transfers are forbidden"):
        sc.compile(x, [x], device=TWO, split="n", transfers="forbid")(numbers(4, 3))
    with pytest.raises(TypeError, match=r"x.numpy\(\) copies it"):
        np.asarray(f(numbers(4, 3), numbers(4, 3)))


def test_sizes_hold_for_parts():
    """What must hold of sizes must hold of those of a rank."""
    x = sc.input("x", "float32", ("n", 3))
    f = sc.compile(sc.parallel.all_reduce(x[2]), [x], device=TWO, split="n")
    np.testing.assert_allclose(f(numbers(6, 3)).numpy(), numbers(6, 3)[[2, 5]].sum(0), rtol=1e-6)
    with pytest.raises(sc.IndexingError, match=r"x.shape\[0\] = 2 must be at least 3") as e:
        f(numbers(4, 3))
    assert "the parts of one of 2 devices" in str(e.value)


def test_kinds_that_are_not_there():
    x = sc.input("x", "int32", (3,))
    with pytest.raises(InputError, match="unknown kind 'men'"):
        sc.parallel.all_reduce(x, "men")
    with pytest.raises(DTypeError, match="numbers of dtype int32 have no 'mean'"):
        sc.parallel.all_reduce(x, "mean")


def test_dtypes_that_devices_do_not_reduce():
    x = sc.input("x", "int16", ("n", 3))
    total = sc.parallel.all_reduce(sc.max(x, axis=0), "maximum")
    assert sc.compile(total, [x], device="cuda")(np.ones((2, 3), "int16")).tolist() == [1, 1, 1]
    with pytest.raises(DTypeError, match="dtype int16 cannot be reduced on cuda:0, cuda:1"):
        sc.compile(total, [x], device=TWO, split="n")


@pytest.mark.parametrize("split", [True, False])
def test_an_error_on_any_rank_is_raised(split):
    table, k = sc.input("table", "float32", (5,)), sc.input("k", "int64", ("n",))
    y = table[k] * 2
    f = sc.compile(y if split else sc.parallel.all_reduce(sc.sum(y)), [table, k], device=TWO, split="n")
    result = f(numbers(5), np.array([0, 1, 2, 7]))
    with pytest.raises(sc.IndexingError, match="out of bounds"):
        result.numpy()
    got = f(numbers(5), np.array([0, 1, 2, 4]))
    np.testing.assert_allclose(np.sum(got.numpy()), 2 * numbers(5)[[0, 1, 2, 4]].sum(), rtol=1e-5)


def test_lines_stay_with_what_reductions_become():
    x = sc.input("x", "float32", ("n", 3))
    f = sc.compile(sc.parallel.all_reduce(sc.sum(x, axis=0), "mean"), [x], mode="fast_compile")._built.function
    g = for_ranks(f, 3, [0])
    assert [v.op.name for v in g.values()][-3:] != [v.op.name for v in f.values()][-3:]
    for v in g.values():
        if v.op.name in ("all_reduce", "div"):
            assert g.locations(v) == f.locations(f.body.results[0]) != []
