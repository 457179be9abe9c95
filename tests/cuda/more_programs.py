"""Further programs that are audited, of kinds that ``programs.py`` has none of: optimizers, cells, attention, images,
statistics, grids, selections, tables, batches of matrices, mixed precision."""

from __future__ import annotations

import math

import numpy as np

import symc as sc
from tests.cuda.programs import PROGRAMS, add, attended, const, layer_norm

nn = sc.nn


def conv(x, w, **more):
    return nn.conv2d(x, w, **more)


# --- losses and optimizers --------------------------------------------------------------------------------------------

add("dice", "x 16,1,512,512; y 16,1,512,512", lambda x, y: (lambda p: 1 - (2 * (p * y).sum((1, 2, 3)) + 1) / (
    p.sum((1, 2, 3)) + y.sum((1, 2, 3)) + 1))(sc.sigmoid(x)).mean(), "x")
add("pixel cross entropy", "x 8,21,256,256; y@8,256,256", lambda x, y: -sc.take_along_axis(
    sc.log_softmax(x, 1), y[:, None], 1).mean(), "x")
add("quantile", "x 1048576,16; w 16,3; y 1048576", lambda x, w, y: (lambda e: sc.maximum(
    const([0.1, 0.5, 0.9]) * e, (const([0.1, 0.5, 0.9]) - 1) * e))(y[:, None] - x @ w).mean(), "w")
add("ranking", "s 4096,64; y 4096,64", lambda s, y: nn.softplus((s[:, None] - s[:, :, None]) * sc.sign(
    y[:, :, None] - y[:, None])).mean(), "s")
add("distillation", "s 16384,1000; t 16384,1000; y@16384", lambda s, t, y: nn.cross_entropy(s, y) + (sc.softmax(
    t / 4, 1) * (sc.log_softmax(t / 4, 1) - sc.log_softmax(s / 4, 1))).sum(1).mean(), "s")
add("lion", "w 4194304; g 4194304; m 4194304", lambda w, g, m: [
    w - 1e-4 * (sc.sign(0.9 * m + 0.1 * g) + 0.1 * w), 0.99 * m + 0.01 * g])
add("adafactor", "w 4096,4096; g 4096,4096; r 4096; c 4096", lambda w, g, r, c: (lambda r, c: [
    w - 1e-3 * g / sc.sqrt(r[:, None] * c / r.mean()), r, c])(
        0.9 * r + 0.1 * (g * g).mean(1), 0.9 * c + 0.1 * (g * g).mean(0)))
add("lamb", "w 4096,1024; g 4096,1024; m 4096,1024", lambda w, g, m: (lambda u: [
    w - 0.01 * sc.sqrt((w * w).sum()) / sc.sqrt((u * u).sum()) * u, u])(0.9 * m + 0.1 * g))

# --- networks ---------------------------------------------------------------------------------------------------------

add("peephole", "x 64,128,256; wx 256,1024; wh 256,1024; p 3,256; r 64,128,256", lambda x, wx, wh, p, r: (sc.scan(
    lambda s, v: (lambda z: (lambda i, f, g, o: (lambda c: ((sc.sigmoid(o + p[2] * c) * sc.tanh(c), c), sc.sigmoid(
        o + p[2] * c) * sc.tanh(c)))(sc.sigmoid(f + p[1] * s[1]) * s[1] + sc.sigmoid(i + p[0] * s[1]) * sc.tanh(g)))(
            *[z[:, 256 * k : 256 * k + 256] for k in range(4)]))(v @ wx + s[0] @ wh),
    (sc.zeros((128, 256), "float32"),) * 2, x)[1] * r).sum(), "wx wh p")
add("both directions", "x 64,128,128; w 128,256; u 256,256", lambda x, w, u: (lambda run: sc.concatenate(
    [run(x), run(x[::-1])[::-1]], 2))(lambda x: sc.scan(lambda h, v: (sc.tanh(v @ w + h @ u),) * 2,
                                                        sc.zeros((128, 256), "float32"), x)[1]))
add("grouped queries", "q 4,32,512,64; k 4,8,512,64; v 4,8,512,64", lambda q, k, v: attended(
    q.reshape(4, 8, 2048, 64), k, v).reshape(4, 32, 512, 64))
add("alibi", "q 4,16,512,64; k 4,16,512,64; v 4,16,512,64", lambda q, k, v: sc.softmax(
    q @ k.swapaxes(-1, -2) / 8 - const(2.0 ** -np.arange(1, 17))[:, None, None] * sc.abs(
        sc.arange(512)[:, None] - sc.arange(512)).astype("float32"), -1) @ v)
add("window attention", "q 64,8,49,32; k 64,8,49,32; v 64,8,49,32; b 8,49,49; r 64,8,49,32", lambda q, k, v, b, r: (
    sc.softmax(q @ k.swapaxes(-1, -2) + b, -1) @ v * r).sum(), "q k v b")
add("patches", "x 64,3,224,224; w 768,768; p 197,768; c 768", lambda x, w, p, c: sc.concatenate([
    sc.broadcast_to(c, (64, 1, 768)), x.reshape(64, 3, 14, 16, 14, 16).transpose(0, 2, 4, 1, 3, 5).reshape(
        64, 196, 768) @ w], 1) + p)
add("mixture of experts", "x 8192,512; g 512,8; w 8,512,512", lambda x, g, w: (lambda p: sum(
    p[:, k : k + 1] * sc.maximum(x @ w[k], 0) for k in range(8)))(sc.softmax(x @ g, 1)))
add("unet", "x 4,16,256,256; a 32,16,3,3; b 32,32,3,3; c 16,48,3,3; r 4,16,256,256", lambda x, a, b, c, r: (lambda d: (
    conv(sc.concatenate([x, sc.repeat(sc.repeat(sc.maximum(conv(d, b, padding=1), 0), 2, 2), 2, 3)], 1), c, padding=1)
    * r).sum())(nn.max_pool2d(sc.maximum(conv(x, a, padding=1), 0), 2)), "a b c")
add("convolution by twos", "x 32,64,56,56; w 128,64,3,3; r 32,128,28,28",
    lambda x, w, r: (conv(x, w, stride=2, padding=1) * r).sum(), "x w")
add("depthwise", "x 32,64,56,56; w 64,1,3,3", lambda x, w: conv(x, w, padding=1, groups=64))
add("dilated", "x 16,32,64,64; w 32,32,3,3", lambda x, w: conv(x, w, padding=2, dilation=2))
add("channels excited", "x 32,64,56,56; a 64,16; b 16,64; r 32,64,56,56", lambda x, a, b, r: (
    x * sc.sigmoid(sc.maximum(x.mean((2, 3)) @ a, 0) @ b)[:, :, None, None] * r).sum(), "x a b")
add("instance norm", "x 16,64,128,128; r 16,64,128,128", lambda x, r: ((x - x.mean((2, 3), keepdims=True)) / sc.sqrt(
    x.var((2, 3), keepdims=True) + 1e-5) * r).sum(), "x")
add("shuffled pixels", "x 16,64,64,64", lambda x: x.reshape(16, 16, 2, 2, 64, 64).transpose(
    0, 1, 4, 2, 5, 3).reshape(16, 16, 128, 128))
add("mixed precision", "x!8192,1024; w 1024,1024; b 1024; s 1024; r!8192,1024", lambda x, w, b, s, r: (layer_norm(
    (x @ w.astype("float16")).astype("float32") + b, s, b).astype("float16") * r).astype("float32").mean(), "w b s")

# --- statistics, grids, particles -------------------------------------------------------------------------------------

add("weighted moments", "x 1048576,32; w 1048576", lambda x, w: (lambda m: [m, (w[:, None] * (x - m) ** 2).sum(
    0) / w.sum()])((w[:, None] * x).sum(0) / w.sum()))
add("autocorrelation", "x 4194304", lambda x: sc.stack([(x[k:] * x[: 4194304 - k]).mean() for k in range(5)]))
add("distances", "x 4096,64; y 4096,64", lambda x, y: sc.sqrt(((x[:, None] - y) ** 2).sum(-1)))
add("softmax of columns", "x 4096,1024", lambda x: sc.softmax(x, 0))
add("ridge by steps", "x 262144,64; y 262144; w 64", lambda x, y, w: sc.fori_loop(
    0, 20, lambda i, w: w - 1e-3 * (x.T @ (x @ w - y) + 0.1 * w), w))
add("shallow water", "h 2048,2048; u 2048,2048; v 2048,2048", lambda h, u, v: (lambda dx, dy: [
    h - 0.1 * (dx(h * u) + dy(h * v)), u - 0.1 * (u * dx(u) + v * dy(u) + 9.8 * dx(h)),
    v - 0.1 * (u * dx(v) + v * dy(v) + 9.8 * dy(h))])(
        lambda f: (sc.roll(f, -1, 1) - sc.roll(f, 1, 1)) / 2, lambda f: (sc.roll(f, -1, 0) - sc.roll(f, 1, 0)) / 2))
add("jacobi steps", "u 2048,2048; f 2048,2048", lambda u, f: sc.fori_loop(0, 50, lambda i, u: u.at[1:-1, 1:-1].set(
    (u[1:-1, 2:] + u[1:-1, :-2] + u[2:, 1:-1] + u[:-2, 1:-1] - f[1:-1, 1:-1]) / 4), u))
add("burgers", "u 4194304", lambda u: u - 0.1 * u * (u - sc.roll(u, 1)) + 0.01 * (
    sc.roll(u, 1) - 2 * u + sc.roll(u, -1)))
add("lattice boltzmann", "f 9,1024,1024", lambda f: (lambda d: f - 0.6 * (f - const(
    [4 / 9, *[1 / 9] * 4, *[1 / 36] * 4])[:, None, None] * d))(f.sum(0)))
add("lennard jones", "p 4096,3", lambda p: (lambda d: (lambda s: 4 * (s**6 - s**3).sum())(
    1 / (d + 1.0)))(((p[:, None] - p) ** 2).sum(-1)), "p")
add("random walk", "z 1024,16384", lambda z: [sc.cumsum(z, 0), sc.cumsum(z, 0).max(0)])

# --- selections and tables --------------------------------------------------------------------------------------------

add("top eight", "x 16384,1024", lambda x: sc.sort(x, 1)[:, -8:])
add("ranks", "x 16384,256", lambda x: sc.argsort(sc.argsort(x, 1), 1))
add("median of rows", "x 16384,255", lambda x: sc.sort(x, 1)[:, 127])
add("selected", "x 4194304; y 4194304; c 4194304", lambda x, y, c: [sc.where(c > 0, x, y), (c > 0).sum()])
add("one hot of labels", "x 65536,256; y@65536", lambda x, y: ((y[:, None] == sc.arange(256)) * x).sum(1))
add("taken along rows", "x 65536,256; i@65536,8", lambda x, i: sc.take_along_axis(x, i, 1))
add("taken along rows gradients", "x 65536,256; i@65536,8; r 65536,8",
    lambda x, i, r: (sc.take_along_axis(x, i, 1) * r).sum(), "x")
add("segment means", "x 1048576,16; i@1048576", lambda x, i: (lambda z: z.at[i].add(x) / sc.maximum(
    sc.zeros(50000, "float32").at[i].add(1.0)[:, None], 1))(sc.zeros((50000, 16), "float32")))
add("segment maxima", "x 1048576; i@1048576", lambda x, i: sc.full(50000, -1e9, "float32").at[i].max(x))
add("two tables", "t 100000,64; u 100000,64; i@262144; j@262144; y 262144", lambda t, u, i, j, y: (
    ((t[i] * u[j]).sum(1) - y) ** 2).mean(), "t u")
add("confusion", "i@4194304; j@4194304", lambda i, j: sc.zeros((10, 10), "int64").at[i, j].add(1))
add("cumsum of a cube", "x 256,256,256", lambda x: [sc.cumsum(x, 1), sc.cumsum(x, 2)])
add("logcumsumexp", "x 4096,4096", lambda x: sc.log(sc.cumsum(sc.exp(x - x.max(1, keepdims=True)), 1)))
add("discounted", "r 1024,65536", lambda r: sc.scan(lambda g, x: (x + 0.99 * g,) * 2, r[0] * 0, r[::-1])[1][::-1])

# --- matrices ---------------------------------------------------------------------------------------------------------

add("batch of solves", "a 4096,16,16; b 4096,16,4", lambda a, b: sc.linalg.solve(a + 16 * sc.eye(16, dtype="float32"),
                                                                                 b))
add("batch of products", "a 1024,64,64; b 1024,64,64", lambda a, b: sc.tanh(a @ b) @ a.swapaxes(1, 2))
add("outer sum", "a 4096; b 4096; r 4096,4096", lambda a, b, r: (sc.tanh(a[:, None] + b) * r).sum(), "a b")
add("bilinear", "a 8192,64; w 64,64; b 8192,64", lambda a, w, b: ((a @ w) * b).sum(1) / math.sqrt(64))
add("einsum", "a 64,128,32; b 64,32,128; c 128,16", lambda a, b, c: sc.einsum("bij,bjk,kl->bil", a, b, c))
add("log det", "a 512,512", lambda a: sc.linalg.slogdet(a @ a.T + sc.eye(512, dtype="float32"))[1], "a")
add("power steps", "a 2048,2048; v 2048", lambda a, v: sc.fori_loop(
    0, 10, lambda i, v: (lambda u: u / sc.sqrt((u * u).sum()))(a @ v), v))

__all__ = ["PROGRAMS"]
