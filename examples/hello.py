"""The ten-line sample: two variables of unknown type, one expression, one compiled call."""

import numpy as np

from symc import Constant, Variable, compile


def main() -> np.ndarray:
    """Compile ``B * A + 1`` and call it by name; returns ten threes."""
    A = Variable("A")
    B = Variable("B")
    C = B * A
    D = C + Constant(1)
    f = compile(D)
    d = f(A=np.ones(10), B=np.ones(10) * 2)
    return d


if __name__ == "__main__":
    print(main())
