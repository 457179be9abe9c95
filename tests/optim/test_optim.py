"""Optimizers against their recurrences in NumPy, float64; what goes before and after them; schedules."""

import math

import numpy as np
import pytest

import symc as sc

optim = sc.optim
STEPS = 25
GRADS = np.random.default_rng(0).normal(size=(STEPS, 3, 4)) * np.geomspace(0.1, 10, STEPS)[:, None, None]
START = np.random.default_rng(2).normal(size=(3, 4))


# --- the recurrences --------------------------------------------------------------------------------------------------


def sgd(rate):
    p = START.copy()
    for t, g in enumerate(GRADS):
        p -= (rate(t) if callable(rate) else rate) * g
        yield p


def momentum(rate, mu=0.9, nesterov=False):
    p, v = START.copy(), 0
    for g in GRADS:
        v = mu * v + g
        p = p - rate * (g + mu * v if nesterov else v)
        yield p


def adagrad(rate, eps=1e-10, start=0.0):
    p, s = START.copy(), start
    for g in GRADS:
        s = s + g**2
        p = p - rate * g / (np.sqrt(s) + eps)
        yield p


def adadelta(rate, rho=0.9, eps=1e-6):
    p, s, d = START.copy(), 0, 0
    for g in GRADS:
        s = rho * s + (1 - rho) * g**2
        move = np.sqrt((d + eps) / (s + eps)) * g
        d = rho * d + (1 - rho) * move**2
        p = p - rate * move
        yield p


def rmsprop(rate, rho=0.99, eps=1e-8):
    p, s = START.copy(), 0
    for g in GRADS:
        s = rho * s + (1 - rho) * g**2
        p = p - rate * g / (np.sqrt(s) + eps)
        yield p


def adam(rate, b1=0.9, b2=0.999, eps=1e-8, decay=0.0, most=False):
    p, m, v, top = START.copy(), 0, 0, 0
    for t, g in enumerate(GRADS, 1):
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g**2
        top = np.maximum(top, v) if most else v
        p = p * (1 - rate * decay) - rate * (m / (1 - b1**t)) / (np.sqrt(top / (1 - b2**t)) + eps)
        yield p


def eg(rate, mu=0.0):
    p, v = np.exp(START) / np.exp(START).sum(), 0
    for g in GRADS:
        v = mu * v - rate * g
        p = p * np.exp(v)
        p = p / p.sum()
        yield p


def triangle(t):
    cycle = math.floor(1 + t / 8)
    return 0.01 + 0.09 * max(0, 1 - abs(t / 4 - 2 * cycle + 1)) * 0.9**t


CASES = {
    "sgd": (optim.sgd(0.1), sgd(0.1)),
    "cyclical": (optim.cyclical_sgd(0.01, 0.1, 4, 0.9), sgd(triangle)),
    "momentum": (optim.momentum(0.1, 0.8), momentum(0.1, 0.8)),
    "nesterov": (optim.nesterov(0.1), momentum(0.1, nesterov=True)),
    "adagrad": (optim.adagrad(0.1, start=0.1), adagrad(0.1, start=0.1)),
    "adadelta": (optim.adadelta(0.5), adadelta(0.5)),
    "rmsprop": (optim.rmsprop(0.1), rmsprop(0.1)),
    "adam": (optim.adam(0.1), adam(0.1)),
    "adamw": (optim.adamw(0.1, decay=0.05), adam(0.1, decay=0.05)),
    "amsgrad": (optim.amsgrad(0.1, b2=0.5), adam(0.1, b2=0.5, most=True)),
    "eg": (optim.eg(0.1, 0.5), eg(0.1, 0.5)),
}  # fmt: skip


def stepper(opt, dtype="float64", start=START, **options):
    w = sc.shared(start.astype(dtype), "w")
    g = sc.input("g", dtype, (3, 4))
    return w, sc.compile([], [g], updates=opt.apply([g], [w]), **options)


@pytest.mark.parametrize("name", CASES)
def test_recurrence(name):
    opt, want = CASES[name]
    w, step = stepper(opt, start=np.exp(START) / np.exp(START).sum() if name == "eg" else START)
    for g, p in zip(GRADS, want, strict=True):
        step(g)
        np.testing.assert_allclose(w.get_value(), p, rtol=1e-12, atol=1e-14)


def test_every_optimizer_keeps_the_dtype():
    for name, make in optim.OPTIMIZERS.items():
        opt = make(*[0.1, 0.2, 5][: 3 if name == "cyclical_sgd" else 1])
        w, step = stepper(opt, "float32", np.full((3, 4), 1 / 12))
        step(GRADS[0])
        assert w.get_value().dtype == np.float32, name
        assert all(s.dtype == "float32" or s.value.shape == () for s in opt.states.values()), name
        assert len(step.kernels) <= 4, name  # the counter, the rate, one sweep or two


def test_adam_in_float32_is_that_of_float64():
    w, step = stepper(optim.adam(0.1), "float32")
    for g, p in zip(GRADS, adam(0.1), strict=True):
        step(g)
        np.testing.assert_allclose(w.get_value(), p, rtol=2e-5, atol=2e-6)


# --- losses and collections -------------------------------------------------------------------------------------------


def regression(opt, **options):
    P = sc.Params(0, "float64")
    x, y = sc.input("x", "float64", ("n", 3)), sc.input("y", "float64", ("n", 4))
    loss = sc.nn.mse(sc.nn.batch_norm(P.sub("bn"), sc.nn.dense(P.sub("l"), x, 4), True), y)
    updates = opt.updates(loss, P, **options)
    return P, loss, updates, sc.compile(updates.loss, [x, y], updates=updates)


def test_updates_of_a_collection():
    opt = optim.adam(0.01)
    P, loss, updates, step = regression(opt)
    assert updates.loss is loss
    assert set(P.trained().values()) | set(P.updates) | set(opt.states.values()) == set(updates)
    assert {"steps", "l/w/m", "l/w/v", "bn/shift/v"} < set(opt.states)
    assert opt.states["l/w/m"].name == "adam/l/w/m" and opt.states["steps"].name == "adam/steps"
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(64, 3))
    losses = [float(step(rows, rows @ np.ones((3, 4)))) for _ in range(300)]
    assert losses[-1] < 0.05 * losses[0] and opt.states["steps"].get_value() == 300
    assert repr(opt) == "sc.optim.adam(0.01, sparse='lazy')"


def test_an_optimizer_asked_twice_keeps_the_same_things():
    opt = optim.momentum(0.1)
    w, first = stepper(opt)
    g = sc.input("h", "float64", (3, 4))
    second = sc.compile([], [g], updates=opt.apply({"w": g}, {"w": w}))
    for k, (one, p) in enumerate(zip(GRADS, momentum(0.1), strict=True)):
        (second if k % 2 else first)(one)
        np.testing.assert_allclose(w.get_value(), p, rtol=1e-12)
    other = sc.shared(START, "w")
    opt.apply([g], [other])
    assert sorted(opt.states) == ["steps", "w/v", "w_1/v"]


def test_a_resumed_run_is_the_run_to_the_bit(tmp_path):
    rng = np.random.default_rng(0)
    data = [(rng.normal(size=(8, 3)), rng.normal(size=(8, 4))) for _ in range(20)]
    make = lambda: optim.chain(optim.clip(0.5), optim.amsgrad(optim.warmup(0.1, 10)), optim.ema(0.9))
    opt = make()
    P, _, _, step = regression(opt)
    for k, rows in enumerate(data):
        if k == 10:
            sc.save_params(tmp_path / "p.safetensors", {"model": P, "optimizer": opt})
        step(*rows)
    again = make()
    Q, _, _, step = regression(again)
    sc.load_params(tmp_path / "p.safetensors", {"model": Q, "optimizer": again})
    for rows in data[10:]:
        step(*rows)
    for one, two in ((P, Q), (opt.states, again.states)):
        assert list(one) == list(two) and ("ema/l/w" in opt.states)
        for name in one:
            np.testing.assert_array_equal(one[name].get_value(), two[name].get_value())


def test_a_subset():
    opt = optim.sgd(0.1)
    P = sc.Params(0)
    x = sc.input("x", "float32", ("n", 3))
    y = sc.nn.dense(P.sub("dec"), sc.nn.dense(P.sub("enc"), x, 3), 3)
    loss = sc.mean(y**2)
    for only, want in ((["dec/*"], {"dec/w", "dec/b"}), ("*/w", {"dec/w", "enc/w"}), (P["enc/b"], {"enc/b"}),
                       ([P["dec/b"], "dec/*"], {"dec/w", "dec/b"})):
        changed = set(opt.update_subset(loss, P, only)) - {opt.states["steps"]}
        assert changed == {P[path] for path in want}
    with pytest.raises(sc.InputError, match="no parameter is decoder"):
        opt.update_subset(loss, P, "decoder/*")


def test_parameters_that_the_loss_does_not_read():
    P = sc.Params()
    w, _ = P.weight("w", 3), P.weight("unused", 3)
    loss = sc.sum(w**2)
    with pytest.raises(sc.GradientError, match="unused"):
        optim.adam().updates(loss, P)
    opt = optim.adam()
    assert P["unused"] not in opt.updates(loss, P, disconnected="skip") and "unused/m" not in opt.states


# --- before and after -------------------------------------------------------------------------------------------------


def test_clipping_and_decay():
    a, b = sc.shared(np.ones(3), "a"), sc.shared(np.full((2, 2), 2.0), "b")
    g, h = np.array([3.0, -0.1, 0.0]), np.array([[4.0, 0], [0, -0.2]])

    def moves(*parts):
        updates = optim.chain(*parts, optim.sgd(1.0)).apply([sc.asarray(g), sc.asarray(h)], [a, b])
        return sc.compile([a - updates[a], b - updates[b]])()

    for got, want in zip(moves(optim.clip(0.5)), (np.clip(g, -0.5, 0.5), np.clip(h, -0.5, 0.5)), strict=True):
        np.testing.assert_allclose(got, want)
    norm = np.sqrt((g**2).sum() + (h**2).sum())
    for bound, scale in ((1.0, 1 / norm), (10.0, 1.0)):
        for got, want in zip(moves(optim.clip_by_global_norm(bound)), (g * scale, h * scale), strict=True):
            np.testing.assert_allclose(got, want)
    for got, want in zip(moves(optim.weight_decay(0.1)), (g + 0.1, h + 0.2), strict=True):
        np.testing.assert_allclose(got, want, atol=1e-15)
    for got, want in zip(moves(optim.weight_decay(0.1, only=lambda p: p.ndim > 1)), (g, h + 0.2), strict=True):
        np.testing.assert_allclose(got, want, atol=1e-15)
    for got, want in zip(moves(optim.clip(0.5), optim.weight_decay(0.1)),
                         (np.clip(g, -0.5, 0.5) + 0.1, np.clip(h, -0.5, 0.5) + 0.2), strict=True):
        np.testing.assert_allclose(got, want, atol=1e-15)
    zero = optim.chain(optim.clip_by_global_norm(1.0), optim.sgd(1.0)).apply([sc.zeros(3)], [a])
    np.testing.assert_array_equal(sc.compile(zero[a])(), np.ones(3))


def test_averages():
    average = optim.ema(0.8)
    w, step = stepper(optim.chain(optim.sgd(0.1), average))
    mean = START
    for g, p in zip(GRADS, sgd(0.1), strict=True):
        step(g)
        mean = 0.8 * mean + 0.2 * p
    np.testing.assert_allclose(average.states["w"].get_value(), mean, rtol=1e-12)
    now, averaged = sc.compile(w + 0.0)(), sc.compile(w + 0.0, givens=average.givens())()
    np.testing.assert_array_equal(averaged, average.states["w"].get_value())
    assert not np.array_equal(now, averaged)


# --- rates ------------------------------------------------------------------------------------------------------------

SCHEDULES = {
    "constant": (optim.constant(0.1), lambda t: 0.1),
    "step": (optim.step_decay(0.1, 0.5, 10), lambda t: 0.1 * 0.5 ** (t // 10)),
    "piecewise": (optim.piecewise([5, 20], [1.0, 0.5, 0.1]), lambda t: 1.0 if t < 5 else 0.5 if t < 20 else 0.1),
    "exponential": (optim.exponential(0.1, 0.5, 7), lambda t: 0.1 * 0.5 ** (t / 7)),
    "inverse": (optim.inverse_time(0.1, 0.3, 0.5), lambda t: 0.1 / math.sqrt(1 + 0.3 * t)),
    "linear": (optim.linear(1.0, 20, 0.5), lambda t: 1 - 0.5 * min(t / 20, 1)),
    "cosine": (optim.cosine(1.0, 20, 0.1), lambda t: 0.1 + 0.45 * (1 + math.cos(math.pi * min(t / 20, 1)))),
    "restarts": (optim.cosine_restarts(1.0, 8), lambda t: 0.5 * (1 + math.cos(math.pi * (t % 8) / 8))),
    "warmup": (optim.warmup(optim.linear(1.0, 10), 4), lambda t: min((t + 1) / 4, 1) * max(0, 1 - max(t - 4, 0) / 10)),
    "warmup to a number": (optim.warmup(0.5, 4), lambda t: 0.5 * min((t + 1) / 4, 1)),
    "cyclical": (optim.cyclical(0.01, 0.1, 4, 0.9), triangle),
    "one's own": (lambda step: 1 / (step + 1), lambda t: 1 / (t + 1)),
}  # fmt: skip


def test_schedules():
    t = sc.input("t", "float64", ("n",))
    steps = np.arange(40.0)
    for (name, (_, want)), got in zip(SCHEDULES.items(), sc.compile([s(t) for s, _ in SCHEDULES.values()], [t])(steps),
                                      strict=True):
        np.testing.assert_allclose(got, [want(k) for k in range(40)], rtol=1e-12, atol=1e-15, err_msg=name)


def test_a_schedule_is_asked_for_the_number_of_steps_before():
    w, step = stepper(optim.sgd(lambda t: sc.where(t < 2, 0.1, 0.01)))
    for g, p in zip(GRADS, sgd(lambda t: 0.1 if t < 2 else 0.01), strict=True):
        step(g)
        np.testing.assert_allclose(w.get_value(), p, rtol=1e-12)


def test_a_rate_that_is_a_state_can_be_set():
    rate = sc.shared(0.1, "rate")
    w, step = stepper(optim.sgd(rate))
    for k, (g, p) in enumerate(zip(GRADS, sgd(lambda t: 0.1 if t < 9 else 0.02), strict=True)):
        if k == 9:
            rate.set_value(0.02)
        step(g)
        np.testing.assert_allclose(w.get_value(), p, rtol=1e-12)


# --- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make, error, message", [
    (lambda w, x: optim.adam(-1.0), sc.InputError, "learning rate is -1.0"),
    (lambda w, x: optim.adam(sparse="fast"), sc.InputError, "lazy, exact, dense"),
    (lambda w, x: optim.adamx, AttributeError, "did you mean 'adam"),
    (lambda w, x: optim.chain(optim.clip(1.0)), sc.InputError, "0 optimizers are given"),
    (lambda w, x: optim.chain(optim.adam(), optim.clip(1.0)), sc.InputError, "wrong side"),
    (lambda w, x: optim.chain(optim.ema(0.9), optim.adam()), sc.InputError, "wrong side"),
    (lambda w, x: optim.clip(0.0), sc.InputError, "the bound is 0.0"),
    (lambda w, x: optim.cosine(0.1, 0), sc.InputError, "steps is 0"),
    (lambda w, x: optim.piecewise([3], [1.0]), sc.InputError, "1 boundaries and 1 rates"),
    (lambda w, x: optim.sgd(0.1).apply([w], [w, w]), sc.InputError, "1 gradients are given for 2"),
    (lambda w, x: optim.sgd(0.1).apply([w[0]], [w]), sc.ShapeError, "the gradient of w has another shape"),
    (lambda w, x: optim.sgd(0.1).apply([x], [x]), sc.InputError, "a parameter is a state"),
    (lambda w, x: optim.sgd(0.1).updates(sc.sum(w), [w], disconnected="zero"), sc.InputError, "raise"),
    (lambda w, x: optim.eg(0.1).apply([optim.SparseRows([0], np.ones((1, 4)))], [w]), sc.InputError, "as a whole"),
    (lambda w, x: optim.SparseRows([0.5], np.ones((1, 4))), sc.DTypeError, "rows are integers"),
])  # fmt: skip
def test_mistakes(make, error, message):
    w, x = sc.shared(START, "w"), sc.input("x", "float64", (3, 4))
    with pytest.raises(error, match=message):
        make(w, x)
