"""Newton's method as a `while_loop`, and the derivative of its answer without differentiating the loop.

Kepler's equation ``E - e sin E = M`` has no closed solution. Every orbit of the batch iterates until all have
converged; the implicit function theorem gives the sensitivity to the eccentricity.
"""

import numpy as np

import symc as sc


def kepler(anomaly: sc.Tensor, eccentricity: sc.Tensor, tolerance: float = 1e-13) -> sc.Tensor:
    """E for mean anomalies M in radians, by Newton's method from E = M."""

    def residual(e: sc.Tensor) -> sc.Tensor:
        return e - eccentricity * sc.sin(e) - anomaly

    def solve(f, start: sc.Tensor) -> sc.Tensor:
        def improve(e: sc.Tensor) -> sc.Tensor:
            return e - f(e) / (1 - eccentricity * sc.cos(e))

        return sc.while_loop(lambda e: sc.max(abs(f(e))) > tolerance, improve, start, max_steps=50)

    def tangent_solve(linear, y: sc.Tensor) -> sc.Tensor:
        return y / linear(sc.ones_like(y))  # one equation an orbit: the Jacobian is diagonal

    return sc.custom_root(residual, anomaly, solve, tangent_solve)


def main(orbits: int = 1000) -> tuple[np.ndarray, np.ndarray]:
    """E and dE/de for a number of orbits at eccentricity 0.7."""
    m, e = sc.input("M", "float64", ("n",)), sc.input("e", "float64", ())
    answer = kepler(m, e)
    f = sc.compile([answer, sc.jvp(answer, e, 1.0)], [m, e], name="kepler")
    anomalies = np.linspace(0, np.pi, orbits)
    found, slope = f(anomalies, 0.7)
    print(f"largest residual {np.abs(found - 0.7 * np.sin(found) - anomalies).max():.1e}")
    print(f"sensitivity to the eccentricity between {slope.min():.3f} and {slope.max():.3f}")
    return found, slope


if __name__ == "__main__":
    main()
