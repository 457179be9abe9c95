"""Programs of computer vision: filters, colours, geometry and histograms of images."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.everyday import counts, program, repeat


def grey(r: np.random.Generator, n: int) -> list[np.ndarray]:
    return [r.uniform(0, 1, (n, n))]


def coloured(r: np.random.Generator, n: int) -> list[np.ndarray]:
    return [r.integers(0, 256, (n, n, 3), dtype=np.uint8)]


@program(512, 12, grey, "float32")
def sobel(xp: Any, im: Any) -> Any:
    gx = im[:-2, 2:] + 2 * im[1:-1, 2:] + im[2:, 2:] - im[:-2, :-2] - 2 * im[1:-1, :-2] - im[2:, :-2]
    gy = im[2:, :-2] + 2 * im[2:, 1:-1] + im[2:, 2:] - im[:-2, :-2] - 2 * im[:-2, 1:-1] - im[:-2, 2:]
    return xp.sqrt(gx * gx + gy * gy)


@program(512, 14, grey, "float32")
def gaussian_blur(xp: Any, im: Any) -> Any:
    weights = np.array([1, 6, 15, 20, 15, 6, 1], "float32") / 64
    padded = xp.pad(im, 3, mode="edge")
    n = im.shape[0]
    rows = sum(float(w) * padded[k : k + n] for k, w in enumerate(weights))
    return sum(float(w) * rows[:, k : k + n] for k, w in enumerate(weights))


@program(512, 13, grey, "float32")
def box_filter(xp: Any, im: Any) -> Any:
    s = xp.cumsum(xp.cumsum(im, axis=0), axis=1)
    return (s[9:, 9:] - s[:-9, 9:] - s[9:, :-9] + s[:-9, :-9]) / 81


@program(512, 12, grey, "float32")
def erosion(xp: Any, im: Any) -> Any:
    parts = [im[i : im.shape[0] - 2 + i, j : im.shape[1] - 2 + j] for i in range(3) for j in range(3)]
    return xp.min(xp.stack(parts), axis=0)


@program(512, 12, coloured, "float32")
def normalize(xp: Any, im: Any) -> Any:
    mean, std = np.array([0.485, 0.456, 0.406], "float32"), np.array([0.229, 0.224, 0.225], "float32")
    return xp.permute_dims((im.astype("float32") / np.float32(255) - mean) / std, (2, 0, 1))


@program(512, 12, coloured, "float32")
def luminance(xp: Any, im: Any) -> Any:
    return im.astype("float32") @ np.array([0.299, 0.587, 0.114], "float32")


@program(400, 10, lambda r, n: [r.uniform(0, 1, (n, n, 3))], "float32")
def hue(xp: Any, im: Any) -> Any:
    r, g, b = im[..., 0], im[..., 1], im[..., 2]
    top, low = xp.maximum(xp.maximum(r, g), b), xp.minimum(xp.minimum(r, g), b)
    span = xp.where(top == low, np.float32(1), top - low)
    h = xp.where(top == r, (g - b) / span % 6, xp.where(top == g, (b - r) / span + 2, (r - g) / span + 4))
    return xp.stack([h / 6, xp.where(top > 0, (top - low) / xp.maximum(top, np.float32(1e-6)), 0), top], axis=-1)


@program(512, 12, lambda r, n: [r.integers(0, 256, (n, n))])
def equalize(xp: Any, im: Any) -> Any:
    cumulative = xp.cumsum(counts(xp, im.reshape(-1), 256))
    table = (cumulative - cumulative[0]) * 255 // (cumulative[-1] - cumulative[0])
    return table[im]


@program(512, 16, lambda r, n: [r.integers(0, 256, (n, n))])
def otsu_threshold(xp: Any, im: Any) -> Any:
    p = counts(xp, im.reshape(-1), 256) / im.size
    weight, mean = xp.cumsum(p), xp.cumsum(p * np.arange(256))
    between = (mean[-1] * weight - mean) ** 2 / xp.maximum(weight * (1 - weight), 1e-12)
    return im > xp.argmax(between)


@program(512, 12, grey, "float32")
def bilinear_resize(xp: Any, im: Any) -> Any:
    n = im.shape[0]
    at = xp.linspace(0, n - 1, 300).astype("float32")
    low = xp.clip(xp.floor(at).astype("int64"), 0, n - 2)
    part = at - low.astype("float32")
    rows = im[low] * (1 - part)[:, None] + im[low + 1] * part[:, None]
    return rows[:, low] * (1 - part) + rows[:, low + 1] * part


@program(400, 11, grey, "float32")
def rotate_nearest(xp: Any, im: Any) -> Any:
    n = im.shape[0]
    y, x = xp.arange(n)[:, None] - n // 2, xp.arange(n)[None, :] - n // 2
    c, s = np.cos(0.3), np.sin(0.3)
    v, u = xp.round(c * y - s * x).astype("int64") + n // 2, xp.round(s * y + c * x).astype("int64") + n // 2
    inside = (v >= 0) & (v < n) & (u >= 0) & (u < n)
    return xp.where(inside, im[xp.clip(v, 0, n - 1), xp.clip(u, 0, n - 1)], np.float32(0))


@program(64, 3, lambda r, n: [r.uniform(0, 1, (n, 56, 56))], "float32")
def max_pool(xp: Any, x: Any) -> Any:
    return xp.max(x.reshape((x.shape[0], 28, 2, 28, 2)), axis=(2, 4))


@program(512, 9, lambda r, n: [r.uniform(0, 1, (n, n)), r.uniform(0, 1, (n, n))], "float32")
def signal_to_noise(xp: Any, a: Any, b: Any) -> Any:
    return 10 * xp.log10(1 / xp.mean((a - b) ** 2))


@program(512, 9, lambda r, n: [*coloured(r, n), *coloured(r, n), r.uniform(0, 1, (n, n, 1))], "float32")
def alpha_blend(xp: Any, a: Any, b: Any, alpha: Any) -> Any:
    return xp.round(alpha * a + (1 - alpha) * b).astype("uint8")


@program(400, 8, lambda r, n: [np.sort(r.uniform(0, 1, (n, 2, 2)), axis=1).reshape(n, 4)])
def box_overlaps(xp: Any, boxes: Any) -> Any:
    low = xp.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = xp.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    inter = xp.prod(xp.clip(high - low, 0, None), axis=-1)
    area = xp.prod(boxes[:, 2:] - boxes[:, :2], axis=-1)
    return inter / (area[:, None] + area[None, :] - inter)


def neighbours(xp: Any, im: Any, reach: int) -> list[Any]:
    """The image shifted by up to ``reach`` each way; edges go on as they are."""
    p, (n, m), side = xp.pad(im, reach, mode="edge"), im.shape, 2 * reach + 1
    return [p[y : y + n, x : x + m] for y in range(side) for x in range(side)]


@program(300, 9, grey, "float32")
def bilateral_filter(xp: Any, im: Any) -> Any:
    total = weight = xp.zeros_like(im)
    for k, near in enumerate(neighbours(xp, im, 2)):
        far = (k // 5 - 2) ** 2 + (k % 5 - 2) ** 2
        w = xp.exp(-((near - im) ** 2) * np.float32(50) - np.float32(far / 8))
        total, weight = total + w * near, weight + w
    return total / weight


@program(400, 9, lambda r, n: [r.integers(0, 256, (n, n), dtype=np.uint8)])
def median_filter(xp: Any, im: Any) -> Any:
    return xp.median(xp.stack(neighbours(xp, im, 1)), axis=0)


@program(300, 9, lambda r, n: [r.uniform(0, 1, (n, n)), r.uniform(0, 1, (n, n))], "float32")
def structural_similarity(xp: Any, a: Any, b: Any) -> Any:
    def box(x: Any) -> Any:
        c = xp.cumsum(xp.cumsum(xp.pad(x, ((1, 0), (1, 0))), axis=0), axis=1)
        return (c[7:, 7:] - c[:-7, 7:] - c[7:, :-7] + c[:-7, :-7]) / 49

    u, v = box(a), box(b)
    spread, shared = box(a * a) - u * u + box(b * b) - v * v, box(a * b) - u * v
    return xp.mean((2 * u * v + 1e-4) * (2 * shared + 9e-4) / ((u * u + v * v + 1e-4) * (spread + 9e-4)))


@program(200, 9, lambda r, n: [r.uniform(0, 1, (n, n)) > 0.5])
def thinning(xp: Any, inside: Any) -> Any:
    """One step of Zhang and Suen: border pixels with one change from outside to inside around them go."""
    q = xp.pad(inside.astype("int8"), 1)
    ring = [q[:-2, 1:-1], q[:-2, 2:], q[1:-1, 2:], q[2:, 2:], q[2:, 1:-1], q[2:, :-2], q[1:-1, :-2], q[:-2, :-2]]
    count = sum(ring)
    changes = sum(((ring[k] == 0) & (ring[(k + 1) % 8] == 1)).astype("int8") for k in range(8))
    return inside & ~((count >= 2) & (count <= 6) & (changes == 1))


@program(512, 9, lambda r, n: [r.integers(0, 256, (n, n), dtype=np.uint8)])
def dilation(xp: Any, im: Any) -> Any:
    rows = im
    for d in (-2, -1, 1, 2):
        rows = xp.maximum(rows, xp.roll(im, d, 0))
    out = rows
    for d in (-2, -1, 1, 2):
        out = xp.maximum(out, xp.roll(rows, d, 1))
    return out


@program(400, 9, lambda r, n: [r.integers(0, 256, (n, n), dtype=np.uint8)])
def local_binary_patterns(xp: Any, im: Any) -> Any:
    (n, m), centre = im.shape, im[1:-1, 1:-1]
    code = xp.zeros_like(centre)
    for bit, (y, x) in enumerate([(0, 0), (0, 1), (0, 2), (1, 2), (2, 2), (2, 1), (2, 0), (1, 0)]):
        code = code | ((im[y : n - 2 + y, x : m - 2 + x] >= centre).astype("uint8") << np.uint8(bit))
    return counts(xp, code.reshape(-1), 256)


@program(200_000, 60, lambda r, n: [r.integers(0, 256, n, dtype=np.uint8), r.integers(0, 256, n, dtype=np.uint8)])
def mutual_information(xp: Any, a: Any, b: Any) -> Any:
    p = counts(xp, (a // 8).astype("int64") * 32 + b // 8, 1024).reshape(32, 32) / a.shape[0]
    apart = xp.sum(p, axis=1)[:, None] * xp.sum(p, axis=0)
    return xp.sum(xp.where(p > 0, p * xp.log(xp.where(p > 0, p, 1) / xp.maximum(apart, 1e-300)), 0))


@program(128, 12, lambda r, n: [r.uniform(0, 1, (n, n)), r.uniform(0, 1, (8, 8))], "float32")
def template_match(xp: Any, im: Any, template: Any) -> Any:
    n = im.shape[0] - 7
    found = norm = xp.zeros_like(im[:n, :n])
    for i in range(8):
        for j in range(8):
            part = im[i : n + i, j : n + j]
            found, norm = found + part * template[i, j], norm + part * part
    return found / xp.sqrt(norm)


@program(64, 3, lambda r, n: [r.uniform(0, 1, (n, 32, 32)), r.normal(size=(3, 3))], "float32")
def depthwise_convolution(xp: Any, x: Any, kernel: Any) -> Any:
    q = xp.pad(x, ((0, 0), (1, 1), (1, 1)))
    return sum(q[:, i : i + 32, j : j + 32] * kernel[i, j] for i in range(3) for j in range(3))


@program(256, 8, coloured, dtype="float32")
def enlarge(xp: Any, im: Any) -> Any:
    """Twice as large, between the four pixels around."""
    low, high, part = [], [], []
    for n in im.shape[:2]:
        at = xp.linspace(0, n - 1, 2 * n).astype("float32")
        low.append(xp.floor(at).astype("int64"))
        high.append(xp.minimum(low[-1] + 1, n - 1))
        part.append(at - low[-1].astype("float32"))
    y, x = part[0][:, None, None], part[1][None, :, None]
    above, below = (im[rows][:, low[1]] * (1 - x) + im[rows][:, high[1]] * x for rows in (low[0], high[0]))
    return above * (1 - y) + below * y


@program(200, 12, lambda r, n: [np.sort(r.uniform(size=(n, 2, 2)), axis=1).reshape(n, 4), r.uniform(size=n)])
def suppressed_boxes(xp: Any, boxes: Any, score: Any) -> Any:
    """Boxes that overlap no better one by half."""
    b = boxes[xp.argsort(-score)]
    n = b.shape[0]
    sides = xp.minimum(b[:, None, 2:], b[None, :, 2:]) - xp.maximum(b[:, None, :2], b[None, :, :2])
    shared, area = xp.prod(xp.maximum(sides, 0), axis=-1), xp.prod(b[:, 2:] - b[:, :2], axis=1)
    over = shared / (area[:, None] + area - shared) > 0.5
    at = xp.arange(n)
    return repeat(xp, n, lambda i, kept: kept & ~(over[i] & (at > i) & kept[i]), at >= 0)
