"""Programs of physics: particles, fields, rays, rotations, orbits."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.everyday import program, repeat


@program(200, 8, lambda r, n: [r.normal(size=(n, 3)), r.uniform(0.5, 1, n)])
def gravity(xp: Any, x: Any, m: Any) -> Any:
    d = x[None, :, :] - x[:, None, :]
    r2 = xp.sum(d * d, axis=-1) + 1e-2
    return xp.sum(d * (m[None, :] / (r2 * xp.sqrt(r2)))[:, :, None], axis=1)


@program(200, 8, lambda r, n: [r.uniform(0, 10, (n, 3))])
def lennard_jones(xp: Any, x: Any) -> Any:
    d = x[:, None, :] - x[None, :, :]
    d = d - 10 * xp.round(d / 10)
    r2 = xp.sum(d * d, axis=-1) + 100.0 * xp.eye(x.shape[0])
    s = 1 / r2**3
    return xp.sum(4 * (s * s - s)) / 2


@program(3, 3, lambda r, n: [r.normal(size=(n, 3)), 0.1 * r.normal(size=(n, 3))])
def three_bodies(xp: Any, x: Any, v: Any) -> Any:
    def pull(x: Any) -> Any:
        d = x[None, :, :] - x[:, None, :]
        r2 = xp.sum(d * d, axis=-1) + 0.05
        return xp.sum(d / (r2 * xp.sqrt(r2))[:, :, None], axis=1)

    def leap(i: Any, state: Any) -> Any:
        x, v = state
        v = v + 0.005 * pull(x)
        x = x + 0.01 * v
        return x, v + 0.005 * pull(x)

    return repeat(xp, 300, leap, (x, v))


@program(200, 12, lambda r, n: [r.uniform(0, 1, (n, n))])
def heat_diffusion(xp: Any, t: Any) -> Any:
    def step(i: Any, t: Any) -> Any:
        p = xp.pad(t, 1, mode="edge")
        return t + 0.2 * (p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * t)

    return repeat(xp, 30, step, t)


@program(2_000, 30, lambda r, n: [np.exp(-((np.arange(n) - n / 3) ** 2) / 50)])
def wave_equation(xp: Any, u: Any) -> Any:
    def step(i: Any, state: Any) -> Any:
        old, u = state
        bend = xp.concatenate([u[:1] * 0, u[2:] - 2 * u[1:-1] + u[:-2], u[:1] * 0])
        return u, 2 * u - old + 0.25 * bend

    return repeat(xp, 200, step, (u, u))[1]


@program(200, 10, lambda r, n: [np.zeros((n, n)), r.normal(size=(n, n - 1)), r.normal(size=(n - 1, n))])
def maxwell(xp: Any, ez: Any, hx: Any, hy: Any) -> Any:
    def step(i: Any, state: Any) -> Any:
        ez, hx, hy = state
        hx = hx - 0.5 * (ez[:, 1:] - ez[:, :-1])
        hy = hy + 0.5 * (ez[1:] - ez[:-1])
        curl = (hy[1:, 1:-1] - hy[:-1, 1:-1]) - (hx[1:-1, 1:] - hx[1:-1, :-1])
        return ez + xp.pad(0.5 * curl, 1), hx, hy

    return repeat(xp, 20, step, (ez, hx, hy))


@program(256, 8, lambda r, n: [r.choice([-1, 1], (n, n)), r.uniform(size=(n, n))])
def ising_sweep(xp: Any, spin: Any, u: Any) -> Any:
    n = spin.shape[0]
    parity = (xp.arange(n)[:, None] + xp.arange(n)[None, :]) % 2
    for side in (0, 1):
        near = xp.roll(spin, 1, 0) + xp.roll(spin, -1, 0) + xp.roll(spin, 1, 1) + xp.roll(spin, -1, 1)
        flip = (u < xp.exp(-0.8 * spin * near)) & (parity == side)
        spin = xp.where(flip, -spin, spin)
    return spin


@program(1_000, 12, lambda r, n: [r.normal(size=(n, 3))])
def lorenz_ensemble(xp: Any, s: Any) -> Any:
    def step(i: Any, s: Any) -> Any:
        x, y, z = s[:, 0], s[:, 1], s[:, 2]
        return s + 0.005 * xp.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z], axis=1)

    return repeat(xp, 50, step, s)


@program(100_000, 30, lambda r, n: [r.uniform(0, 2 * np.pi, n), r.uniform(0, 0.9, n)])
def kepler_equation(xp: Any, mean: Any, e: Any) -> Any:
    x = mean + e * xp.sin(mean)
    for _ in range(5):
        x = x - (x - e * xp.sin(x) - mean) / (1 - e * xp.cos(x))
    return 2 * xp.arctan2(xp.sqrt(1 + e) * xp.sin(x / 2), xp.sqrt(1 - e) * xp.cos(x / 2))


@program(100_000, 30, lambda r, n: [r.normal(size=(n, 3)), r.normal(size=4)])
def rotate_points(xp: Any, x: Any, q: Any) -> Any:
    q = q / xp.sqrt(xp.sum(q * q))
    w, v = q[0], q[1:]
    t = 2 * xp.cross(xp.broadcast_to(v, x.shape), x)
    return x + w * t + xp.cross(xp.broadcast_to(v, x.shape), t)


@program(200, 12, lambda r, n: [np.linspace(-2, 0.6, n), np.linspace(-1.2, 1.2, n)])
def mandelbrot(xp: Any, re: Any, im: Any) -> Any:
    c = re[None, :] + 1j * im[:, None]

    def step(i: Any, state: Any) -> Any:
        z, n = state
        inside = xp.abs(z) < 2
        return xp.where(inside, z * z + c, z), n + inside

    return repeat(xp, 30, step, (0 * c, xp.zeros(c.shape, dtype="int64")))[1]


@program(300, 10, lambda r, n: [r.normal(size=(n, n, 3)) * 0.3 + np.array([0, 0, 1.0])], "float32")
def ray_sphere(xp: Any, rays: Any) -> Any:
    d = rays / xp.sqrt(xp.sum(rays * rays, axis=-1, keepdims=True))
    centre = np.array([0.1, 0, 3], "float32")
    b = xp.sum(d * centre, axis=-1)
    disc = b * b - np.float32(8.01)
    t = b - xp.sqrt(xp.maximum(disc, np.float32(0)))
    normal = t[..., None] * d - centre
    return xp.where(disc > 0, xp.maximum(normal @ np.array([0.5, 0.5, -0.7], "float32"), np.float32(0)), np.float32(0))


@program(100_000, 20, lambda r, n: [r.uniform(0, 100, n), r.uniform(100, 400, n)])
def planck_radiance(xp: Any, wave: Any, t: Any) -> Any:
    w = (wave + 1) * 1e-6
    return 2 * 6.626e-34 * 2.998e8**2 / w**5 / xp.expm1(6.626e-34 * 2.998e8 / (w * 1.381e-23 * t))


@program(1_000, 20, lambda r, n: [r.uniform(10, 50, n), r.uniform(0.2, 1.3, n)])
def projectiles(xp: Any, speed: Any, angle: Any) -> Any:
    def step(i: Any, state: Any) -> Any:
        x, y, vx, vy = state
        drag = 0.01 * xp.hypot(vx, vy)
        up = y >= 0
        return (xp.where(up, x + 0.02 * vx, x), xp.where(up, y + 0.02 * vy, y),
                vx - 0.02 * drag * vx, vy - 0.02 * (9.81 + drag * vy))  # fmt: skip

    zero = xp.zeros_like(speed)
    return repeat(xp, 100, step, (zero, zero, speed * xp.cos(angle), speed * xp.sin(angle)))[0]


@program(600, 9, lambda r, n: [r.uniform(0, 1, (n, 2)), r.normal(size=(n, 2))])
def smoothed_particles(xp: Any, x: Any, v: Any) -> Any:
    d, h = x[:, None, :] - x[None, :, :], 0.1
    r2 = xp.sum(d * d, axis=-1)
    density = xp.sum(xp.where(r2 < h * h, (h * h - r2) ** 3, 0.0), axis=1) * 315 / (64 * np.pi * h**9)
    pressure, r = 1000 * (density - 1), xp.sqrt(r2 + 1e-12)
    slope = xp.where(r < h, -45 / (np.pi * h**6) * (h - r) ** 2 / r, 0.0)
    push = (pressure[:, None] + pressure[None, :]) / (2 * density[None, :]) * slope
    drag = xp.where(r < h, 45 / (np.pi * h**6) * (h - r) / density[None, :], 0.0)
    return 0.1 * xp.sum(drag[..., None] * (v[None] - v[:, None]), axis=1) - xp.sum(push[..., None] * d, axis=1)


WAYS = [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)]
SHARES = [4 / 9, *[1 / 9] * 4, *[1 / 36] * 4]


@program(100, 8, lambda r, n: [1 + 0.1 * r.uniform(0, 1, (9, n, n))])
def lattice_boltzmann(xp: Any, f: Any) -> Any:
    def step(i: Any, f: Any) -> Any:
        f = xp.stack([xp.roll(f[k], way, (0, 1)) for k, way in enumerate(WAYS)])
        density = xp.sum(f, axis=0)
        u, v = (sum(way[a] * f[k] for k, way in enumerate(WAYS)) / density for a in (0, 1))
        along = [3 * (way[0] * u + way[1] * v) for way in WAYS]
        rest = [s * density * (1 + c + 0.5 * c * c - 1.5 * (u * u + v * v)) for s, c in zip(SHARES, along, strict=True)]
        return f - 0.6 * (f - xp.stack(rest))

    return repeat(xp, 10, step, f)


@program(2_000, 7, lambda r, n: [r.normal(size=(n, *s, 4)).view("complex128") for s in ((2,), (2,), ())])
def qubit_gates(xp: Any, first: Any, second: Any, state: Any) -> Any:
    """Two gates of each qubit, one after the other: how probable its states are, and how alike all are before."""
    after = (second @ first @ state[..., None])[..., 0]
    odds = xp.abs(after) ** 2
    return odds / xp.sum(odds, axis=1, keepdims=True), xp.abs(xp.vdot(state[1:], state[:-1]))
