"""Programs of signal processing: filters, spectra, envelopes, wavelets."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.everyday import program, repeat


def wave(r: np.random.Generator, n: int) -> list[np.ndarray]:
    return [np.sin(np.arange(n) * 0.05) + 0.3 * r.normal(size=n)]


@program(50_000, 80, lambda r, n: [*wave(r, n), r.normal(size=31)])
def fir_filter(xp: Any, x: Any, taps: Any) -> Any:
    return xp.convolve(x, taps, mode="same")


@program(65_536, 64, wave)
def low_pass(xp: Any, x: Any) -> Any:
    spectrum = xp.fft.rfft(x)
    keep = xp.arange(spectrum.shape[0]) < spectrum.shape[0] // 8
    return xp.fft.irfft(xp.where(keep, spectrum, 0), n=x.shape[0])


@program(65_536, 1024, wave)
def spectrogram(xp: Any, x: Any) -> Any:
    frames = x.reshape((-1, 256)) * np.hanning(256)
    return xp.log(xp.abs(xp.fft.rfft(frames, axis=1)) ** 2 + 1e-12)


@program(65_536, 64, wave)
def envelope(xp: Any, x: Any) -> Any:
    n = x.shape[0]
    k = xp.arange(n)
    double = xp.where((k == 0) | (k == n // 2), 1.0, xp.where(k < n // 2, 2.0, 0.0))
    return xp.abs(xp.fft.ifft(xp.fft.fft(x) * double))


@program(16_384, 64, wave)
def autocorrelation(xp: Any, x: Any) -> Any:
    n = x.shape[0]
    f = xp.fft.rfft(x - xp.mean(x), n=2 * n)
    a = xp.fft.irfft(f * xp.conj(f), n=2 * n)[:200 if n > 200 else n]
    return a / a[0]


@program(200_000, 100, wave)
def zero_crossings(xp: Any, x: Any) -> Any:
    return xp.sum(xp.signbit(x[1:]) != xp.signbit(x[:-1]))


@program(200_000, 100, wave)
def peaks(xp: Any, x: Any) -> Any:
    inner = x[1:-1]
    return (inner > x[:-2]) & (inner > x[2:]) & (inner > 0.5)


@program(65_536, 64, wave)
def haar_wavelet(xp: Any, x: Any) -> Any:
    parts = []
    for _ in range(5):
        pairs = x.reshape((-1, 2))
        parts.append((pairs[:, 0] - pairs[:, 1]) / np.sqrt(2))
        x = (pairs[:, 0] + pairs[:, 1]) / np.sqrt(2)
    return xp.concatenate([x, *parts[::-1]])


@program(100_000, 60, wave)
def resample(xp: Any, x: Any) -> Any:
    n = x.shape[0]
    return xp.interp(xp.arange(0, n - 1, 0.75), xp.arange(n).astype("float64"), x)


@program(200_000, 100, wave)
def moving_average(xp: Any, x: Any) -> Any:
    s = xp.cumsum(x)
    return (s[25:] - s[:-25]) / 25


@program(200_000, 100, wave, "float32")
def mu_law(xp: Any, x: Any) -> Any:
    y = xp.sign(x) * xp.log1p(np.float32(255) * xp.minimum(xp.abs(x), np.float32(1))) / np.float32(np.log(256))
    return xp.floor((y + 1) * 127.5).astype("uint8")


@program(100_000, 60, lambda r, n: [r.uniform(-np.pi, np.pi, n)])
def unwrap(xp: Any, phase: Any) -> Any:
    jumps = (xp.diff(phase) + np.pi) % (2 * np.pi) - np.pi
    return phase[0] + xp.cumsum(jumps)


@program(100_000, 30, wave)
def median_of_five(xp: Any, x: Any) -> Any:
    n = x.shape[0] - 4
    return xp.median(xp.stack([x[k : n + k] for k in range(5)]), axis=0)


@program(100_000, 60, lambda r, n: [r.uniform(-10, 10, n)])
def wrap_angles(xp: Any, angle: Any) -> Any:
    return (angle + np.pi) % (2 * np.pi) - np.pi


@program(200, 9, lambda r, n: [r.normal(size=(n, 2))])
def kalman_filter(xp: Any, seen: Any) -> Any:
    move, see = xp.asarray(np.eye(4) + 0.1 * np.eye(4, k=2)), xp.asarray(np.eye(2, 4))

    def step(t: Any, state: Any) -> Any:
        x, spread = move @ state[0], move @ state[1] @ move.T + 0.01 * xp.eye(4)
        gain = spread @ see.T @ xp.linalg.inv(see @ spread @ see.T + 0.1 * xp.eye(2))
        return x + gain @ (seen[t] - see @ x), spread - gain @ see @ spread

    return repeat(xp, seen.shape[0], step, (xp.zeros(4), xp.eye(4)))


@program(50_000, 64, wave)
def daubechies_wavelet(xp: Any, x: Any) -> Any:
    taps, parts = [0.4829629131, 0.8365163037, 0.2241438680, -0.1294095226], []
    for _ in range(3):
        n, ring = x.shape[0], xp.concatenate([x, x[:2]])
        low = sum(taps[k] * ring[k : n + k : 2][: n // 2] for k in range(3))
        parts.append(sum((-1) ** k * taps[3 - k] * ring[k : n + k : 2][: n // 2] for k in range(3)))
        x = low
    return xp.concatenate([x, *parts[::-1]])


@program(4_000, 300, wave)
def pitch(xp: Any, x: Any) -> Any:
    """The lag at which a wave differs least from itself."""
    n = x.shape[0] - 120
    return xp.argmin(xp.stack([xp.mean(xp.abs(x[:n] - x[k : n + k])) for k in range(20, 120)])) + 20


@program(20_000, 90, lambda r, n: [*wave(r, n), r.normal(size=2 * n // 5)])
def echo_delay(xp: Any, x: Any, call: Any) -> Any:
    """The place of a long call in what was heard, and its loudness."""
    found = xp.correlate(x, call, "valid")
    return xp.argmax(xp.abs(found)), xp.max(xp.abs(found)) / xp.sum(call * call)
