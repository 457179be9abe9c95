"""Programs with sizes that nobody named, as users write them: each function here makes its program anew.

It returns the arguments of ``compile``: outputs, inputs, and options.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import symc as sc
from symc.driver.warm import Recorded

Program = tuple[Any, Any, dict]
PROGRAMS: dict[str, Callable[[], Program]] = {}


def is_warm(f: Any) -> bool:
    """True if the code of a function was found on disk."""
    return isinstance(getattr(f._program, "main", f._program), Recorded)


def program(make: Callable[[], Program]) -> Callable[[], Program]:
    PROGRAMS[make.__name__] = make
    return make


@sc.function_op(vjp=lambda g, t: g * 2 * t)
def squared(t: Any) -> Any:
    return t * t


@program
def one_size() -> Program:
    x = sc.vector("x")
    return sc.sum(sc.exp(x)) + x, [x], {}


@program
def sizes_that_must_be_equal() -> Program:
    x, y, z = sc.vector("x"), sc.matrix("y"), sc.vector("z")
    return y @ x + z, [y, z, x], {}


@program
def other_order_of_inputs() -> Program:
    z, x = sc.vector("z"), sc.matrix("y")
    return x @ z + z[:1], [z, x], {}


@program
def inputs_are_found() -> Program:
    x, y = sc.matrix("x"), sc.vector("y")
    return sc.tanh(x + y), None, {}


@program
def named_like_ours() -> Program:
    x, y = sc.vector("x"), sc.input("y", "float64", shape=("_0", "_1"))
    return sc.sum(x) + y * y.shape[1], [x, y], {}


@program
def products_of_sizes() -> Program:
    x, y, z = sc.tensor3("x"), sc.matrix("y"), sc.vector("z")
    a, b, c = x.shape
    flat = sc.reshape(x, (a * b * c,))
    both = sc.concatenate([flat, sc.reshape(y, (-1,)), z])
    return (both * both.shape[0], sc.reshape(x, (a * b, c)) / (a * b + b * c + c * a)), [z, y, x], {}


@program
def parts_of_sizes() -> Program:
    x, y = sc.vector("x"), sc.vector("y")
    n, m = x.shape[0], y.shape[0]
    both = sc.concatenate([x, y])[1:-1]
    return (x[: n // 2], y[::3], x[-2:], sc.arange(n + 2 * m), sc.zeros((m, n)), both), [x, y], {}


@program
def sums_in_the_interface() -> Program:
    x, y = sc.vector("x"), sc.vector("y")
    z = sc.input("z", "float64", shape=(x.shape[0] + y.shape[0],))
    return sc.concatenate([x, y]) * z, [z, x, y], {}


@program
def a_size_alone() -> Program:
    x, y = sc.vector("x"), sc.vector("y")
    return y.shape[0] * x, [x, y], {}


@program
def loops() -> Program:
    x, h = sc.matrix("x"), sc.vector("h")
    last, rows = sc.scan(lambda c, r: (sc.tanh(c + r) * x.shape[0], sc.sum(c * r)), h, x)
    return (last, rows), [x, h], {}


@program
def nested_loops() -> Program:
    x, h = sc.tensor3("x"), sc.vector("h")

    def row(c: Any, r: Any) -> Any:
        return sc.scan(lambda d, q: (sc.sin(d) + q, None), c, r)[0], c

    return sc.scan(row, h, x), [h, x], {}


@program
def gradient_of_a_loop() -> Program:
    x, h = sc.matrix("x"), sc.vector("h")
    last, _ = sc.scan(lambda c, r: (sc.tanh(c * r), None), h, x)
    return sc.grad(sc.sum(last * last), [h, x]), [x, h], {}


@program
def branches() -> Program:
    x, y = sc.vector("x"), sc.vector("y")
    return sc.cond(sc.sum(x) > 0, lambda: sc.exp(x) * y, lambda: x - y.shape[0]), [x, y], {}


@program
def while_loops() -> Program:
    x = sc.vector("x")
    return sc.while_loop(lambda v: sc.sum(v) < 10, lambda v: v * 2 + 1, x), [x], {}


@program
def batches() -> Program:
    x, w = sc.tensor3("x"), sc.matrix("w")
    return sc.vmap(lambda a: sc.grad(sc.sum(sc.tanh(a @ w)), a))(x), [w, x], {}


@program
def network_in_place() -> Program:
    x, y = sc.matrix("x"), sc.vector("y")
    w, b = sc.shared(np.ones((3, 2)), "w"), sc.shared(np.zeros(2), "b")
    loss = sc.mean((sc.sum(sc.tanh(x @ w + b), axis=1) - y) ** 2)
    return loss, [x, y], {"updates": {p: p - 0.1 * g for p, g in zip((w, b), sc.grad(loss, [w, b]), strict=True)}}


@program
def states_of_any_size() -> Program:
    w, x = sc.shared(np.ones(3), shape=(None,)), sc.vector("x")
    return w * 2 + sc.sum(x), [x], {"updates": {w: w + 1}}


@program
def states_without_names() -> Program:
    a, b = sc.shared(np.ones(3)), sc.shared(np.zeros((2, 3)))
    return a + b, [], {"updates": {a: a + 1}}


@program
def random_numbers() -> Program:
    x, rng = sc.vector("x"), sc.random.Generator(3)
    return x + rng.normal(x.shape) * rng.uniform(x.shape), [x], {"updates": rng.updates()}


@program
def keys() -> Program:
    key, x = sc.random.key(0), sc.matrix("x")
    a, b = sc.random.split(key)
    return sc.random.normal(a, x.shape) + sc.random.permutation(b, x), [x], {}


@program
def effects() -> Program:
    x, y = sc.vector("x"), sc.vector("y")
    small = sc.debug.assert_(x, x < 1e9, "large")
    h, _ = sc.scan(lambda c, r: (sc.debug.assert_(c + r, c < 1e9, "in the loop"), None), sc.sum(small), y)
    return sc.debug.assert_(small * h, y > -1e9, "both", y=y), [x, y], {}


@program
def derivatives_of_users() -> Program:
    x = sc.vector("x")
    own = sc.function_op(vjp=lambda g, t: g)(lambda t: sc.sin(t))
    again = sc.function_op(vjp=lambda g, t: g * 3)(lambda t: sc.cos(t))
    return (squared(x), own(x), again(x), sc.grad(sc.sum(squared(x) * own(x)), x)), [x], {}


@program
def opaque_blocks() -> Program:
    x, y = sc.vector("x"), sc.matrix("y")
    return sc.function_op(lambda a, b: sc.softmax(b + a, axis=1), opaque=True, name="soft")(x, y), [x, y], {}


@program
def assumptions() -> Program:
    x, y = sc.matrix("x"), sc.vector("y")
    good = sc.assume(x, positive=True)
    return sc.linalg.inv(sc.assume(good @ good.T, symmetric=True)) @ sc.sqrt(good) * y, [y, x], {}


@program
def linear_algebra() -> Program:
    a, b = sc.matrix("a"), sc.matrix("b")
    return (sc.linalg.solve(a @ a.T + sc.eye(a.shape[0]), b), sc.linalg.cholesky(a)), [b, a], {}


@program
def givens() -> Program:
    x, y = sc.vector("x"), sc.vector("y")
    return sc.sum(x * 2) + y, [y], {"givens": {x: y * y}}


@program
def checkpoints() -> Program:
    x = sc.vector("x")
    return sc.grad(sc.sum(sc.checkpoint(lambda t: sc.exp(sc.sin(t)) * t.shape[0])(x)), x), [x], {}


@program
def many_sizes() -> Program:
    xs = [sc.vector(f"x{k}") for k in range(12)]
    count = sum(x.shape[0] for x in xs)
    return (sc.concatenate(xs[::-1]) * count, sum(sc.sum(x) for x in xs)), xs[3:] + xs[:3], {}
