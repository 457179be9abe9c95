"""A rewrite rule of your own: two expressions, a claim about rounding, its test, and what it changes."""

import math

import numpy as np

import symc as sc
from symc import testing
from symc.ir.ops.arithmetic import abs_
from symc.ir.ops.math import cosh, log, softplus
from symc.opt import rule


@rule(exact=False, domain={"x": (0.1, 300)})
def log_cosh(x):
    """cosh overflows at 711, where its logarithm is only 710."""
    return log(cosh(x)), abs_(x) + softplus(-2 * abs_(x)) - math.log(2)


def test_rule() -> None:
    """The rule fires, comes to an end, keeps types, and is as accurate as it claims."""
    testing.check_rule(log_cosh)


def main() -> tuple[float, str]:
    """A loss at errors of 1000, and the rules that fired in it."""
    error = sc.vector("error")
    loss = sc.compile(sc.mean(sc.log(sc.cosh(error))))
    return float(loss(np.full(5, 1000.0))), str(loss.explain())


if __name__ == "__main__":
    test_rule()
    value, rules = main()
    print(f"loss {value:.3f}\n{rules}")
