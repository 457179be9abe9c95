"""A rewrite rule of your own: two expressions, a claim about rounding, its test, and what it changes."""

import numpy as np

import symc as sc
from symc import testing
from symc.opt import rule


@rule(domain={"x": (-1e6, 1e6)})
def angle_between_steps(x):
    """Angles that are nearly equal cancel: at 1e9 they agree in all their digits."""
    return sc.atan(x + 1) - sc.atan(x), sc.atan(1 / (1 + x * (x + 1)))


def test_rule() -> None:
    """The rule fires, comes to an end, keeps types, and is as accurate as it claims."""
    testing.check_rule(angle_between_steps)


def main() -> tuple[float, str]:
    """The angle at which a step of 1 is seen from a distance of 1e9, and the rules that fired."""
    distance = sc.scalar("distance")
    angle = sc.compile(sc.atan(distance + 1) - sc.atan(distance))
    return float(angle(np.float64(1e9))), str(angle.explain())


if __name__ == "__main__":
    test_rule()
    value, rules = main()
    print(f"angle {value:.6g}\n{rules}")
