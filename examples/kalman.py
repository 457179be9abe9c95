"""A Kalman filter and the gradient of its likelihood: how much of the Nile's yearly flow is noise, how much is change?

The local level model of Durbin and Koopman (2012, chapter 2): the level of the river is a random walk, the measurement
adds noise. The filter is a scan over the years; the likelihood of both variances is differentiated through it and
maximized.
"""

import numpy as np
from scipy.optimize import minimize

import symc as sc

# Annual flow of the Nile at Aswan, 1871-1970, in 1e8 cubic metres (Cobb 1978).
NILE = [
    1120, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140, 995, 935, 1110, 994, 1020, 960, 1180, 799, 958, 1140,
    1100, 1210, 1150, 1250, 1260, 1220, 1030, 1100, 774, 840, 874, 694, 940, 833, 701, 916, 692, 1020, 1050, 969, 831,
    726, 456, 824, 702, 1120, 1100, 832, 764, 821, 768, 845, 864, 862, 698, 845, 744, 796, 1040, 759, 781, 865, 845,
    944, 984, 897, 822, 1010, 771, 676, 649, 846, 812, 742, 801, 1040, 860, 874, 848, 890, 744, 749, 838, 1050, 918,
    986, 797, 923, 975, 815, 1020, 906, 901, 1170, 912, 746, 919, 718, 714, 740,
]


def negative_log_likelihood(flow: sc.Tensor, noise: sc.Tensor, change: sc.Tensor) -> tuple[sc.Tensor, sc.Tensor]:
    """Negative log likelihood of both variances, and the filtered levels. Starts at the first year."""

    def year(state, y):
        level, variance = state
        surprise, spread = y - level, variance + noise
        gain = variance / spread
        level = level + gain * surprise
        cost = 0.5 * (sc.log(2 * np.pi * spread) + surprise**2 / spread)
        return (level, variance * (1 - gain) + change), (cost, level)

    start = (flow[0], noise + change)
    _, (costs, levels) = sc.scan(year, start, flow[1:])
    return costs.sum(), levels


def main() -> tuple[float, float, np.ndarray]:
    """The most likely variances, and the filtered level of every year but the first."""
    flow, logs = sc.input("flow", "float64", ("t",)), sc.input("logs", "float64", (2,))
    variances = sc.exp(logs)
    cost, levels = negative_log_likelihood(flow, variances[0], variances[1])
    fit = sc.compile([cost, sc.grad(cost, logs)], [logs, flow], name="fit")
    curve = sc.compile(sc.hessian(cost, logs), [logs, flow], name="curvature")

    data = np.array(NILE, float)
    found = minimize(lambda p: fit(p, data), np.log([data.var(), data.var()]), jac=True, method="BFGS")
    noise, change = np.exp(found.x)
    errors = np.sqrt(np.diag(np.linalg.inv(curve(found.x, data))))
    print(f"{found.nfev} evaluations, likelihood {-found.fun:.3f}")
    print(f"variance of the measurement {noise:.0f} (log +- {errors[0]:.2f}), of the change {change:.0f} "
          f"(log +- {errors[1]:.2f})")
    return noise, change, sc.compile(levels, [logs, flow])(found.x, data)


if __name__ == "__main__":
    main()
