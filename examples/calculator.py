"""A calculator that learns: expressions of any shape, a network for each operation, the result as a class.

`("+", 3, ("*", 2, 4))` is computed from the inside out by vectors; nobody says what the operations mean. It is the
example that TensorFlow Fold came with, in a model of twelve lines.
"""

import numpy as np

import symc as sc
import symc.fold as fd
from examples.tagger import Weights

MODULUS = 5
OPERATIONS = {"+": np.add, "-": np.subtract, "*": np.multiply}


def expression(rng: np.random.Generator, depth: int) -> tuple | int:
    """A random one: a digit, or (operation, left, right)."""
    if depth == 0 or rng.random() < 0.2:
        return int(rng.integers(MODULUS))
    return list(OPERATIONS)[rng.integers(3)], expression(rng, depth - 1), expression(rng, depth - 1)


def value(e: tuple | int) -> int:
    return e if isinstance(e, int) else int(OPERATIONS[e[0]](value(e[1]), value(e[2]))) % MODULUS


def calculator(size: int) -> tuple[fd.Combinator, list]:
    """The model: of an expression, the scores of its results, and a loss for each part of it."""
    p = Weights(1)
    vector = fd.f32[size]
    digit, out = fd.lib.embed(p("digits", MODULUS, size, scale=1), "digit"), p("out", size, MODULUS)

    def operation(name: str) -> fd.Block:
        hidden, last = p(f"{name} hidden", 2 * size, 4 * size), p(f"{name} last", 4 * size, size)
        return fd.block(lambda a, b: sc.tanh(sc.tanh(sc.concatenate([a, b]) @ hidden) @ last), out=vector, a=vector,
                        b=vector)

    part = fd.Rec("part")
    cases = {name: operation(name)(part[1], part[2]) for name in OPERATIONS}
    scores, nll = fd.lib.affine(out), fd.lib.cross_entropy(fd.f32[MODULUS])
    part.define(fd.OneOf(lambda e: "digit" if isinstance(e, int) else e[0], cases | {"digit": digit})
                .also(nll(scores(fd.self_), value)))
    return part >> scores >> fd.Metric("scores"), p.all


def main(size: int = 32, epochs: int = 20, count: int = 2000, depth: int = 3, show: bool = True) -> float:
    """Train, and return how many of other expressions are computed right."""
    rng = np.random.default_rng(0)
    model, params = calculator(size)
    step = fd.compile(model, params, sc.optim.adagrad(0.05), mean=True)
    data = step.encode([expression(rng, depth) for _ in range(count)])
    others = [expression(rng, depth) for _ in range(count // 4)]
    held, right = step.encode(others), [value(e) for e in others]
    for epoch in range(epochs):
        losses = [step(batch) for batch in data.shuffled(50, seed=epoch)]
        if show and epoch % 5 == 4:
            print(f"epoch {epoch}: loss {np.mean(losses):.3f}")
    accuracy = float((step.metrics(held)["scores"].argmax(axis=1) == right).mean())
    if show:
        print(f"{accuracy:.3f} of new expressions are right")
    return accuracy


if __name__ == "__main__":
    main()
