"""An operation of your own: its meaning in NumPy, its derivative, and how a compiled kernel computes one element."""

import math

import numpy as np

import symc as sc


@sc.op(derivative=lambda x: (1 - 2 * x * x) * sc.exp(-x * x), numba=lambda x: x * math.exp(-x * x))
def bump(x):
    """``x * exp(-x**2)``, elementwise."""
    return x * np.exp(-x * x)


def main(x: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The value and the slope of ``bump`` at ``x``, from one compiled function."""
    x = np.linspace(-2, 2, 9) if x is None else x
    sc.verify_grad(bump, [x])

    v = sc.vector("v")
    f = sc.compile((bump(v), sc.grad(sc.sum(bump(v)), v)))
    return f(x)


if __name__ == "__main__":
    value, slope = main()
    print("bump ", value.round(3))
    print("slope", slope.round(3))
