"""`checkpoint(fn)`: the numbers stay, and what a derivative keeps goes."""

import numpy as np
import pytest

import symc as sc
from symc.errors import InputError
from symc.ir.traverse import every_value
from symc.tensors import pytree as nest

RNG = np.random.default_rng(7)
X, W, B = RNG.normal(size=(4, 5)), RNG.normal(size=(5, 5)) * 0.5, RNG.normal(size=5)


def leaves():
    return (sc.input("x", "float64", shape=("n", 5)), sc.input("w", "float64", shape=(5, 5)),
            sc.input("b", "float64", shape=(5,)))


def layer(p, h, scale=1.0):
    """A nest of parameters, a keyword, a nest of results with a number in it."""
    return {"h": sc.tanh(h @ p["w"] + p["b"]) * scale, "aux": (sc.exp(-h), 3.0)}


def net(wrap, x, w, b):
    f, h, total = wrap(layer), x, 0
    for i in range(3):
        out = f({"w": w, "b": b}, h, scale=1.0 + i)
        h = out["h"]
        total = total + sc.mean(out["aux"][0]) * out["aux"][1]
    return sc.sum(h * h) + total


def block(wrap, x, w, b):
    return wrap(lambda z: sc.tanh(z * b) @ w)(x)


def scanned(wrap, x, w, b):
    f = wrap(lambda h, r: sc.tanh(h @ w + r))

    def step(h, r):
        new = f(h, r)
        return new, new.sum()

    last, ys = sc.scan(step, b, x)
    return sc.sum(last * b) + sc.sum(ys * ys)


PROGRAMS = {
    "gradient": lambda k, x, w, b: sc.grad(net(k, x, w, b), [x, w, b]),
    "forward over reverse": lambda k, x, w, b: sc.hvp(net(k, x, w, b), [w, b], [w, b * 2]),
    "reverse over reverse": lambda k, x, w, b: sc.grad(sc.sum(sc.grad(net(k, x, w, b), w) ** 2), [x, w, b]),
    "forward": lambda k, x, w, b: sc.jvp(net(k, x, w, b), [w, x], [w * 2, x]),
    "reverse over forward": lambda k, x, w, b: sc.grad(sc.jvp(net(k, x, w, b), [w], [w]), [w, b]),
    "vmap": lambda k, x, w, b: sc.vmap(lambda r: block(k, r, w, b))(x),
    "gradient of vmap": lambda k, x, w, b: sc.grad(sc.sum(sc.vmap(lambda r: block(k, r, w, b))(x) ** 2), [x, w]),
    "vmap of gradient": lambda k, x, w, b: sc.vmap(lambda r: sc.grad(sc.sum(block(k, r, w, b) ** 2), w))(x),
    "captured": lambda k, x, w, b: sc.grad(sc.sum(k(lambda: sc.tanh(x @ w) * sc.exp(b))()), [x, w, b]),
    "nested": lambda k, x, w, b: sc.grad(
        sc.sum(k(lambda z: k(lambda y: sc.tanh(y @ w))(k(sc.sin)(z)))(x)), [x, w]),
    "in a loop": lambda k, x, w, b: sc.grad(scanned(k, x, w, b), [x, w, b]),
    "around a loop": lambda k, x, w, b: sc.grad(k(lambda z: scanned(lambda f: f, z, w, b))(x), [x, w, b]),
    "several results": lambda k, x, w, b: sc.grad(sc.sum(k(lambda z: (sc.sin(z), z @ w, sc.argmax(z)))(x)[1]), [x, w]),
    "masked": lambda k, x, w, b: sc.grad(sc.sum(sc.where(x > 0, k(sc.sqrt)(x), 0.0)), x),
}  # fmt: skip


def plain(f):
    return f


def flat(results):
    return [np.asarray(r) for r in nest.flatten(results)[0]]


@pytest.mark.parametrize("policy", ["nothing", "dots"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_are_those_without(name, policy):
    """By the references all; by native code each in both modes, of which every second one takes the other policy."""
    args = leaves()
    used = [args, [X, W, B]]
    expected = flat(sc.compile(PROGRAMS[name](plain, *args), args, mode="reference")(*used[1]))
    assert all(np.isfinite(e).all() for e in expected)
    program = PROGRAMS[name](sc.checkpoint(policy=policy), *args)
    native = ("default", "fast_compile")[(list(PROGRAMS).index(name) + (policy == "dots")) % 2]
    for mode in (native, "reference"):
        for got, want in zip(flat(sc.compile(program, args, mode=mode)(*used[1])), expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12, err_msg=mode)


# --- what is kept -----------------------------------------------------------------------------------------------------


def blocks(wrap, count, per=5, rows=64, size=32):
    """A deep chain of products, the parts of which are wrapped; its gradient."""
    x = sc.input("x", "float64", shape=(rows, size))
    w = sc.input("w", "float64", shape=(size, size))

    def part(h):
        for _ in range(per):
            h = sc.tanh(h @ w)
        return h

    h = x
    for _ in range(count):
        h = wrap(part)(h)
    return [x, w], sc.grad(sc.sum(h), x)


def count(f, op):
    return sum(v.op.name == op for v in every_value(f._compilation.final.body))


def test_a_chain_of_parts_holds_one_part_and_what_lies_between():
    full, small = (sc.compile(out, ins) for ins, out in (blocks(plain, 6), blocks(sc.checkpoint, 6)))
    array = 64 * 32 * 8
    assert full.memory() > 30 * array  # every layer's value
    assert small.memory() < (6 + 5 + 6) * array  # between parts, inside one, and what passes through
    assert count(small, "dot") == count(full, "dot") + 30  # each layer once more
    assert count(full, "again") == 0


def test_dots_are_kept_by_that_policy():
    full, kept, again = (sc.compile(out, ins) for ins, out in (
        blocks(plain, 4), blocks(sc.checkpoint(policy="dots"), 4), blocks(sc.checkpoint, 4)))
    assert count(kept, "dot") == count(full, "dot") < count(again, "dot")


def test_a_second_computation_waits_for_the_cotangent():
    """Else it could run right after the first one, and nothing would be gained."""
    ins, out = blocks(sc.checkpoint, 4)
    plan = sc.compile(out, ins)._compilation.plan
    at = {s.value: k for k, s in enumerate(plan.steps)}
    waiting = 0
    for v in every_value(plan.function.body):
        for o in v.operands:
            if o.op.name == "again" and v in at:
                for g in o.operands[1:]:
                    assert at[g if g in at else g.operands[0]] < at[v]
                    waiting += 1
    assert waiting >= 4


def test_the_step_of_a_loop_keeps_carries_and_rows():
    x = sc.input("x", "float64", shape=(50, 100))
    h0 = sc.input("h", "float64", shape=(100,))

    def work(h, r):
        for _ in range(4):
            h = sc.sin(h * r) + sc.cos(h)
        return h

    def loss(f):
        return sc.sum(sc.scan(lambda h, r: (f(h, r), None), h0, x)[0])

    full, small = (sc.compile(sc.grad(loss(f), [x, h0]), [x, h0]) for f in (work, sc.checkpoint(work)))
    assert small.memory() <= full.memory()
    data = RNG.normal(size=(50, 100)), RNG.normal(size=100)
    for got, want in zip(flat(small(*data)), flat(full(*data)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)
    extra = small.memory() - sum(a.nbytes for a in data) * 2  # beyond arguments and results
    assert extra < 1.2 * data[0].nbytes + 20 * 800  # one carry a step


def test_lines_of_the_function_stay():
    ins, out = blocks(sc.checkpoint, 2)
    text = sc.compile(out, ins).dump()
    products = [line for line in text.splitlines() if " = dot " in line]
    assert len(products) > 10 and all("test_checkpoint.py" in line for line in products)


def test_effects_take_place_once(capsys):
    x = sc.input("x", "float64", shape=(3,))

    def noisy(h):
        return sc.sin(sc.debug.print(h, "h = {}") * 2)

    f = sc.compile(sc.grad(sc.sum(sc.checkpoint(noisy)(x)), x), [x])
    np.testing.assert_allclose(f(np.ones(3)), 2 * np.cos(2) * np.ones(3))
    assert capsys.readouterr().out.count("h = ") <= 1


def test_as_a_decorator():
    @sc.checkpoint
    def f(x):
        """Doc."""
        return sc.sin(x)

    x = sc.scalar("x")
    assert f.__name__ == "f" and f.__doc__ == "Doc."
    assert sc.compile(sc.grad(f(x), x))(0.5) == pytest.approx(np.cos(0.5))


@pytest.mark.parametrize(("make", "text"), [
    (lambda: sc.checkpoint(3), "checkpoint takes a function, not int"),
    (lambda: sc.checkpoint(sc.sin, policy="dot"), "did you mean 'dots'?"),
    (lambda: sc.checkpoint(lambda x: "no")(sc.scalar("x")), "checkpoint: result is not an array: str 'no'"),
])  # fmt: skip
def test_mistakes(make, text):
    with pytest.raises(InputError) as e:
        make()
    assert text in str(e.value)
    assert "test_checkpoint.py" in str(e.value)


def test_a_loop_of_scalars_stays_a_kernel():
    h = sc.scalar("h")

    def step(h):
        return sc.sin(h) * 1.1 + h * 0.3

    plans = [sc.compile(sc.grad(sc.scan(lambda h, _, f=f: (f(h), None), h, None, length=50)[0], h), [h])
             for f in (step, sc.checkpoint(step))]  # fmt: skip
    assert [[s.kind for s in f._compilation.plan.steps] for f in plans] == [["launch", "launch"]] * 2
    assert plans[0](0.3) == pytest.approx(plans[1](0.3), rel=1e-12)
