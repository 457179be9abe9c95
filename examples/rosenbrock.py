"""SciPy's minimize with a gradient and Hessian-vector products from symc, on Rosenbrock's function."""

import numpy as np
from scipy.optimize import OptimizeResult, minimize

import symc as sc


def main(size: int = 1000) -> OptimizeResult:
    """Minimize Rosenbrock's function of ``size`` variables; the minimum is at all ones."""
    x = sc.input("x", "float64", shape=("n",))
    v = sc.input("v", "float64", shape=("n",))
    cost = sc.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    value_and_gradient = sc.compile((cost, sc.grad(cost, x)), [x])
    hessian_times = sc.compile(sc.hvp(cost, x, v), [x, v])

    start = np.tile([-1.2, 1.0], size // 2)
    result = minimize(value_and_gradient, start, method="trust-ncg", jac=True, hessp=hessian_times,
                      options={"gtol": 1e-8})
    print(f"{result.message} {result.nit} iterations, |x - 1| <= {np.abs(result.x - 1).max():.1e}")
    return result


if __name__ == "__main__":
    main()
