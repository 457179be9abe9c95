"""Gaussian process regression: how diabetes progresses in a year, from ten measurements of 442 patients.

The covariance of two patients is a scale times exp(-d^2 / 2), with one length for each measurement in the distance d,
plus noise. The likelihood of the data by these twelve numbers is differentiated through the Cholesky factor of the
covariance and maximized; a long length says that a measurement does not matter. scikit-learn's likelihood and gradient
are compared on the way.
"""

import numpy as np
from scipy.optimize import minimize
from sklearn.datasets import load_diabetes
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

import symc as sc

NAMES = ["age", "sex", "bmi", "pressure", "s1", "s2", "s3", "s4", "s5", "s6"]


def covariance(x: sc.Tensor, y: sc.Tensor, logs: sc.Tensor) -> sc.Tensor:
    """Covariance of the rows of x and y, without noise. ``logs``: of the scale, the lengths, the noise."""
    lengths = sc.exp(logs[1:-1])
    x, y = x / lengths, y / lengths
    distance2 = (x**2).sum(1)[:, None] + (y**2).sum(1) - 2 * x @ y.T
    return sc.exp(logs[0] - 0.5 * distance2)


def main(patients: int = 200, steps: int = 100) -> dict[str, float]:
    """Train on some patients, predict the others. Returns what was found and how it compares."""
    x, y = load_diabetes(return_X_y=True)
    x, y = x / x.std(0), (y - y.mean()) / y.std()
    x, y, others, truth = x[:patients], y[:patients], x[patients:], y[patients:]

    logs, known, values = sc.vector("logs"), sc.matrix("known"), sc.vector("values")
    unit = sc.eye(known.shape[0])
    low = np.linalg.cholesky(covariance(known, known, logs) + sc.exp(logs[-1]) * unit)
    weights = sc.linalg.cho_solve((low, True), values)
    cost = 0.5 * values @ weights + sc.log(np.linalg.diagonal(low)).sum() + 0.5 * values.size * np.log(2 * np.pi)
    fit = sc.compile([cost, sc.grad(cost, logs)], [logs, known, values], name="fit")

    new = sc.matrix("new")
    between = covariance(known, new, logs)
    spread = sc.exp(logs[0]) - (sc.linalg.solve_triangular(low, between, lower=True) ** 2).sum(0)
    predict = sc.compile([between.T @ weights, sc.sqrt(spread)], [logs, known, values, new], name="predict")

    start = np.log([1.0, *[3.0] * x.shape[1], 0.5])
    kernel = ConstantKernel(1.0) * RBF([3.0] * x.shape[1]) + WhiteKernel(0.5)
    other = GaussianProcessRegressor(kernel, optimizer=None).fit(x, y)
    likelihood, gradient = other.log_marginal_likelihood(start, eval_gradient=True)
    ours = fit(start, x, y)

    found = minimize(lambda p: fit(p, x, y), start, jac=True, method="L-BFGS-B", bounds=[(-6, 6)] * len(start),
                     options={"maxiter": steps})
    mean, deviation = predict(found.x, x, y, others)
    error = float(np.sqrt(np.mean((mean - truth) ** 2)))
    inside = float(np.mean(np.abs(truth - mean) < 2 * np.sqrt(deviation**2 + np.exp(found.x[-1]))))
    print(f"likelihood {-ours[0]:.6f} (scikit-learn: {likelihood:.6f}), {-found.fun:.3f} after {found.nit} steps")
    print(f"root mean square error {error:.3f} of a standard deviation, {inside:.0%} within two deviations")
    print("what matters: " + ", ".join(NAMES[k] for k in np.argsort(found.x[1:-1])[:4]))
    return {
        "likelihood": -ours[0], "reference": likelihood, "gradient": float(np.abs(ours[1] + gradient).max()),
        "found": -found.fun, "again": other.log_marginal_likelihood(found.x), "error": error, "inside": inside,
    }  # fmt: skip


if __name__ == "__main__":
    main()
