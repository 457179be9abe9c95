"""Ordinary programs at the sizes of a GPU, whose launches are audited: losses, networks with gradients, attention,
recurrences, statistics, equations of physics, particles, tables.

An argument is ``name shape`` with sizes apart from one another by commas; ``name@shape`` is int64, ``name!shape``
float16. ``grad`` names what is differentiated by: the gradients follow the value."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import symc as sc

DTYPES = {"@": "int64", "!": "float16", " ": "float32"}


@dataclass(frozen=True)
class Program:
    name: str
    arguments: str
    function: Callable[..., Any]
    grad: str = ""

    def compiled(self, symbolic: bool = False) -> Any:
        """The function on the device "cuda". ``symbolic``: sizes from 1,000 on have names, such as "s4096"."""
        given = {}
        for item in filter(None, map(str.strip, self.arguments.split(";"))):
            sign = next((c for c in item if c in DTYPES), " ")
            name, _, shape = item.partition(sign)
            given[name] = sc.input(name, DTYPES[sign], tuple(
                f"s{s}" if symbolic and int(s) >= 1000 else int(s) for s in shape.split(",") if s))
        made = self.function(**given)
        results = list(made) if isinstance(made, list | tuple) else [made]
        if self.grad:
            results += sc.grad(results[0], [given[k] for k in self.grad.split()])
        return sc.compile(results, list(given.values()), device="cuda", name=self.name.replace(" ", "_"))


PROGRAMS: dict[str, Program] = {}


def add(name: str, arguments: str, function: Callable[..., Any], grad: str = "") -> None:
    assert name not in PROGRAMS
    PROGRAMS[name] = Program(name, arguments, function, grad)


nn = sc.nn


def const(x):
    """An array as a value."""
    return sc.asarray(np.asarray(x, "float32"))


# --- losses of the output of a layer with a bias ----------------------------------------------------------------------

_layer = "x 65536,512; w 512,10; b 10; y 65536,10"
_class = "x 65536,512; w 512,10; b 10; y@65536"
for _name, _loss in {
    "mse": nn.mse, "bce": nn.binary_cross_entropy, "mae": nn.mae, "huber": nn.huber, "log cosh": nn.log_cosh,
    "poisson": nn.poisson_nll, "focal": nn.focal, "soft margin": nn.soft_margin, "kl": nn.kl_divergence,
}.items():
    add(_name, _layer, lambda x, w, b, y, f=_loss: f(x @ w + b, y), "w b")
add("cross entropy", _class, lambda x, w, b, y: nn.cross_entropy(x @ w + b, y), "w b")
add("cross entropy smoothed", _class, lambda x, w, b, y: nn.cross_entropy(x @ w + b, y, label_smoothing=0.1), "w b")
add("cross entropy of a vocabulary", "h 2048,768; w 768,50257; y@2048",
    lambda h, w, y: nn.cross_entropy(h @ w, y), "h w")
add("mse of one output", "x 262144,64; w 64; b ; y 262144", lambda x, w, b, y: ((x @ w + b - y) ** 2).mean(), "w b")
add("logistic regression", "x 262144,64; w 64; b ; y 262144",
    lambda x, w, b, y: nn.binary_cross_entropy(x @ w + b, y) + 1e-3 * (w * w).sum(), "w b")
add("hinge", "x 65536,512; w 512; y 65536", lambda x, w, y: sc.maximum(0, 1 - y * (x @ w)).mean(), "w")
add("triplet", "a 65536,128; p 65536,128; n 65536,128", lambda a, p, n: nn.triplet_margin(a, p, n), "a p n")
add("cosine", "a 65536,256; b 65536,256", lambda a, b: (1 - nn.cosine_similarity(a, b)).mean(), "a b")
add("contrastive", "a 4096,128; b 4096,128",
    lambda a, b: nn.cross_entropy(a @ b.T / 0.07, sc.arange(4096)) + nn.cross_entropy(b @ a.T / 0.07, sc.arange(4096)),
    "a b")
add("gaussian nll", "m 262144,8; v 262144,8; y 262144,8", lambda m, v, y: nn.gaussian_nll(m, y, sc.exp(v)), "m v")

# --- dense networks ---------------------------------------------------------------------------------------------------

_mlp = "x 16384,784; w1 784,1024; b1 1024; w2 1024,1024; b2 1024; w3 1024,10; b3 10; "


def mlp(x, w1, b1, w2, b2, w3, b3, act=nn.relu if hasattr(nn, "relu") else lambda t: sc.maximum(t, 0)):
    return act(act(x @ w1 + b1) @ w2 + b2) @ w3 + b3


add("mlp classifier", _mlp + "y@16384", lambda y, **p: nn.cross_entropy(mlp(**p), y), "w1 b1 w2 b2 w3 b3")
add("mlp gelu mse", _mlp + "y 16384,10", lambda y, **p: nn.mse(mlp(**p, act=nn.gelu), y), "w1 b1 w2 b2 w3 b3")
add("mlp tanh bce", _mlp + "y 16384,10", lambda y, **p: nn.binary_cross_entropy(mlp(**p, act=sc.tanh), y),
    "w1 b1 w2 b2 w3 b3")


def autoencoder(x, w1, b1, w2, b2):
    return nn.mse(sc.sigmoid(sc.tanh(x @ w1 + b1) @ w2 + b2), x)


def vae(x, w, m, s, d, b, e):
    h = sc.tanh(x @ w)
    mean, log_var = h @ m, h @ s
    z = mean + sc.exp(0.5 * log_var) * e
    kl = -0.5 * (1 + log_var - mean**2 - sc.exp(log_var)).sum(1).mean()
    return nn.binary_cross_entropy(z @ d + b, x) + kl


add("autoencoder", "x 16384,784; w1 784,64; b1 64; w2 64,784; b2 784", autoencoder, "w1 b1 w2 b2")
add("variational autoencoder", "x 16384,784; w 784,512; m 512,32; s 512,32; d 32,784; b 784; e 16384,32", vae,
    "w m s d b")
add("highway", "x 32768,512; w 512,512; t 512,512; b 512",
    lambda x, w, t, b: (sc.sigmoid(x @ t + b) * sc.tanh(x @ w) + (1 - sc.sigmoid(x @ t + b)) * x).sum(), "w t b")
add("residual", "x 32768,512; w 512,512; b 512; r 32768,512",
    lambda x, w, b, r: ((x + sc.maximum(x @ w + b, 0)) * r).mean(), "x w b")
add("gated", "x 32768,512; w 512,2048; v 512,2048; u 2048,512; r 32768,512",
    lambda x, w, v, u, r: (((nn.silu(x @ w) * (x @ v)) @ u) * r).mean(), "x w v u")
add("dropout", "x 32768,512; w 512,512; b 512; m 32768,512",
    lambda x, w, b, m: (sc.maximum(x @ w + b, 0) * (m > 0.1) / 0.9).sum(), "w b")
add("mlp half", "x!16384,1024; w!1024,1024; b!1024; r!16384,1024",
    lambda x, w, b, r: (sc.maximum(x @ w + b, 0) * r).astype("float32").mean(), "w b")
add("wide and deep", "x 65536,64; d 65536,32; w 64,128; v 160,1; y 65536,1",
    lambda x, d, w, v, y: nn.binary_cross_entropy(sc.concatenate([sc.maximum(x @ w, 0), d], 1) @ v, y), "w v")
add("adam", "w 4194304; g 4194304; m 4194304; v 4194304",
    lambda w, g, m, v: [w - 1e-3 * (0.9 * m + 0.1 * g) / (sc.sqrt(0.999 * v + 0.001 * g * g) + 1e-8),
                        0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g])
add("clipped gradient", "w 4194304; g 4194304", lambda w, g: w - 0.1 * g / sc.maximum(1.0, sc.sqrt((g * g).sum())))

# --- normalization, softmax -------------------------------------------------------------------------------------------


def layer_norm(x, s, b):
    d = x - x.mean(-1, keepdims=True)
    return d / sc.sqrt((d * d).mean(-1, keepdims=True) + 1e-5) * s + b


for _n in (256, 1024, 4096, 50257):
    add(f"softmax {_n}", f"x {2**25 // _n},{_n}", lambda x: sc.softmax(x, -1))
    add(f"softmax gradient {_n}", f"x {2**25 // _n},{_n}; r {2**25 // _n},{_n}",
        lambda x, r: (sc.softmax(x, -1) * r).sum(), "x")
for _n in (768, 4096):
    add(f"layer norm {_n}", f"x {2**25 // _n},{_n}; s {_n}; b {_n}", layer_norm)
    add(f"layer norm gradients {_n}", f"x {2**25 // _n},{_n}; s {_n}; b {_n}; r {2**25 // _n},{_n}",
        lambda x, s, b, r: (layer_norm(x, s, b) * r).sum(), "x s b")
add("layer norm half", "x!8192,4096; s!4096; b!4096", layer_norm)
add("rms norm gradients", "x 16384,2048; s 2048; r 16384,2048",
    lambda x, s, r: (x / sc.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * s * r).sum(), "x s")
add("log softmax", "x 32768,1000", lambda x: sc.log_softmax(x, -1))
add("logsumexp", "x 32768,1000", lambda x: sc.logsumexp(x, -1))


def batch_norm(x, s, b):
    d = x - x.mean((0, 2, 3), keepdims=True)
    return d / sc.sqrt((d * d).mean((0, 2, 3), keepdims=True) + 1e-5) * s.reshape(1, -1, 1, 1) + b.reshape(1, -1, 1, 1)


add("batch norm", "x 32,64,56,56; s 64; b 64", batch_norm)
add("batch norm gradients", "x 32,64,56,56; s 64; b 64; r 32,64,56,56",
    lambda x, s, b, r: (sc.maximum(batch_norm(x, s, b), 0) * r).sum(), "x s b")
add("batch norm of rows", "x 65536,512; s 512; b 512; r 65536,512",
    lambda x, s, b, r: ((x - x.mean(0)) / sc.sqrt(x.var(0) + 1e-5) * s + b) * r)

# --- attention --------------------------------------------------------------------------------------------------------


def rope(x, base=10000.0):
    n, d = x.shape[-2], x.shape[-1]
    angle = sc.arange(int(n), dtype="float32")[:, None] * const(base ** (-np.arange(0, int(d), 2) / int(d)))
    c, s = sc.cos(angle), sc.sin(angle)
    a, b = x[..., : int(d) // 2], x[..., int(d) // 2 :]
    return sc.concatenate([a * c - b * s, a * s + b * c], -1)


def rope_pairs(x):
    n, d = int(x.shape[-2]), int(x.shape[-1])
    angle = sc.arange(n, dtype="float32")[:, None] * const(1e4 ** (-np.arange(0, d, 2) / d))
    a, b = x[..., ::2], x[..., 1::2]
    return sc.stack([a * sc.cos(angle) - b * sc.sin(angle), a * sc.sin(angle) + b * sc.cos(angle)], -1).reshape(x.shape)


def attended(q, k, v, mask=None):
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(int(q.shape[-1]))
    return sc.softmax(scores if mask is None else sc.where(mask, scores, -1e9), -1) @ v


_qkv = "q 8,16,512,64; k 8,16,512,64; v 8,16,512,64"
add("attention", _qkv, attended)
add("attention gradients", _qkv + "; r 8,16,512,64", lambda q, k, v, r: (attended(q, k, v) * r).sum(), "q k v")
add("causal attention gradients", _qkv + "; r 8,16,512,64", lambda q, k, v, r: (
    attended(q, k, v, sc.arange(512)[:, None] >= sc.arange(512)) * r).sum(), "q k v")
add("rope", "x 8,16,512,64", rope)
add("rope pairs", "x 8,16,512,64", rope_pairs)
add("rope attention", _qkv, lambda q, k, v: attended(rope(q), rope(k), v))
add("rope attention gradients", _qkv + "; r 8,16,512,64",
    lambda q, k, v, r: (attended(rope(q), rope(k), v) * r).sum(), "q k v")
add("rope pairs gradients", "x 8,16,512,64; r 8,16,512,64", lambda x, r: (rope_pairs(x) * r).sum(), "x")
add("heads", "x 8,512,1024; w 1024,3072; b 3072", lambda x, w, b: [
    (x @ w + b).reshape(8, 512, 3, 16, 64)[:, :, i].transpose(0, 2, 1, 3) for i in range(3)])


def block(x, r, s1, o1, wqkv, bqkv, wo, bo, s2, o2, w1, b1, w2, b2, heads=16):
    n, t, d = map(int, x.shape)
    qkv = (layer_norm(x, s1, o1) @ wqkv + bqkv).reshape(n, t, 3, heads, d // heads)
    q, k, v = (qkv[:, :, i].transpose(0, 2, 1, 3) for i in range(3))
    y = x + attended(q, k, v).transpose(0, 2, 1, 3).reshape(n, t, d) @ wo + bo
    return ((y + nn.gelu(layer_norm(y, s2, o2) @ w1 + b1, approximate=True) @ w2 + b2) * r).mean()


_block = ("x 8,512,1024; r 8,512,1024; s1 1024; o1 1024; wqkv 1024,3072; bqkv 3072; wo 1024,1024; bo 1024; s2 1024; "
          "o2 1024; w1 1024,4096; b1 4096; w2 4096,1024; b2 1024")
add("transformer block", _block, block)
add("transformer block gradients", _block, block, "s1 o1 wqkv bqkv wo bo s2 o2 w1 b1 w2 b2")
add("cached attention", "q 32,16,1,64; k 32,16,2048,64; v 32,16,2048,64", attended)
add("linear attention", "q 8,2048,64; k 8,2048,64; v 8,2048,64",
    lambda q, k, v: (nn.elu(q) + 1) @ ((nn.elu(k) + 1).swapaxes(-1, -2) @ v))

# --- images -----------------------------------------------------------------------------------------------------------

_image = "x 32,64,56,56; w 64,64,3,3; b 64"
add("convolution", _image, lambda x, w, b: sc.maximum(nn.conv2d(x, w, b, padding=1), 0))
add("convolution gradients", _image + "; r 32,64,56,56",
    lambda x, w, b, r: (sc.maximum(nn.conv2d(x, w, b, padding=1), 0) * r).sum(), "x w b")
add("max pool gradients", "x 32,64,112,112; r 32,64,56,56", lambda x, r: (nn.max_pool2d(x, 2) * r).sum(), "x")
add("average pool gradients", "x 32,64,112,112; r 32,64,56,56", lambda x, r: (nn.avg_pool2d(x, 2) * r).sum(), "x")
add("global pool", "x 64,512,14,14; w 512,100; b 100; y@64",
    lambda x, w, b, y: nn.cross_entropy(x.mean((2, 3)) @ w + b, y), "x w b")
add("cnn classifier", "x 64,3,64,64; w 32,3,3,3; b 32; v 64,32,3,3; c 64; d 16384,10; e 10; y@64",
    lambda x, w, b, v, c, d, e, y: nn.cross_entropy(nn.max_pool2d(sc.maximum(nn.conv2d(nn.max_pool2d(sc.maximum(
        nn.conv2d(x, w, b, padding=1), 0), 2), v, c, padding=1), 0), 2).reshape(64, 16384) @ d + e, y), "w b v c d e")
add("unet skip", "a 16,64,256,256; b 16,64,256,256", lambda a, b: sc.concatenate([a, sc.maximum(b, 0)], 1))
add("unet skip gradients", "a 16,32,128,128; b 16,32,128,128; w 32,64,1,1; r 16,32,128,128",
    lambda a, b, w, r: (nn.conv2d(sc.concatenate([a, sc.maximum(b, 0)], 1), w) * r).sum(), "a b w")
add("concatenation of rows", "a 4096,1024; b 4096,1024; c 4096,1024", lambda a, b, c: sc.concatenate([a, b, c], 0))
add("concatenation of unequal columns", "a 65536,96; b 65536,32", lambda a, b: sc.concatenate([a, sc.tanh(b)], 1))
add("stack", "a 65536,128; b 65536,128", lambda a, b: sc.stack([a, b], 1))
add("normalized images", "x 64,3,224,224", lambda x: (x - const([[[0.5]], [[0.4]], [[0.3]]])) / 0.2)
add("upsampling", "x 16,64,64,64", lambda x: sc.repeat(sc.repeat(x, 2, 2), 2, 3))
add("transposed images", "x 64,224,224,3", lambda x: sc.transpose(x, (0, 3, 1, 2)) / 255.0)
add("group norm", "x 32,64,56,56", lambda x: (lambda g: (
    (g - g.mean((2, 3), keepdims=True)) / sc.sqrt(g.var((2, 3), keepdims=True) + 1e-5)).reshape(32, 64, 56, 56))(
        x.reshape(32, 8, 8, 3136)))

# --- recurrences ------------------------------------------------------------------------------------------------------


def lstm_step(state, x, wx, wh, b):
    h, c = state
    z = x @ wx + h @ wh + b
    n = int(h.shape[-1])
    i, f, g, o = (z[:, k * n : (k + 1) * n] for k in range(4))
    c = sc.sigmoid(f) * c + sc.sigmoid(i) * sc.tanh(g)
    h = sc.sigmoid(o) * sc.tanh(c)
    return (h, c), h


def lstm(x, wx, wh, b):
    n = int(wh.shape[0])
    start = sc.zeros((x.shape[1], n), "float32")
    return sc.scan(lambda s, k: lstm_step(s, k, wx, wh, b), (start, start), x)[1]


def gru(x, wx, wh, b):
    n = int(wh.shape[0])

    def step(h, x):
        u, v = x @ wx + b, h @ wh
        z, r = sc.sigmoid(u[:, :n] + v[:, :n]), sc.sigmoid(u[:, n : 2 * n] + v[:, n : 2 * n])
        h = (1 - z) * h + z * sc.tanh(u[:, 2 * n :] + r * v[:, 2 * n :])
        return h, h

    return sc.scan(step, sc.zeros((x.shape[1], n), "float32"), x)[1]


add("lstm", "x 128,256,256; wx 256,2048; wh 512,2048; b 2048", lstm)
add("lstm gradients", "x 128,256,256; wx 256,2048; wh 512,2048; b 2048; r 128,256,512",
    lambda r, **p: (lstm(**p) * r).sum(), "wx wh b")
add("gru", "x 128,256,256; wx 256,1536; wh 512,1536; b 1536", gru)
add("gru gradients", "x 128,256,256; wx 256,1536; wh 512,1536; b 1536; r 128,256,512",
    lambda r, **p: (gru(**p) * r).sum(), "wx wh b")
add("rnn gradients", "x 64,512,128; w 128,512; u 512,512; r 512,512", lambda x, w, u, r: (sc.scan(
    lambda h, s: (sc.tanh(s @ w + h @ u),) * 2, sc.zeros((512, 512), "float32"), x)[0] * r).sum(), "w u")
add("state space", "a 1024,1024; x 512,1024,64",
    lambda a, x: sc.scan(lambda h, s: (sc.sigmoid(a[:, :64]) * h + s,) * 2, sc.zeros((1024, 64), "float32"), x)[1])

# --- tables, scatter, sorting, running sums ---------------------------------------------------------------------------

add("embedding", "t 50257,768; i@8,1024", lambda t, i: t[i])
add("embedding gradients", "t 50257,768; i@8,1024; r 8,1024,768", lambda t, i, r: (t[i] * r).sum(), "t")
add("small embedding gradients", "t 10,64; i@1048576; r 1048576,64", lambda t, i, r: (t[i] * r).sum(), "t")
add("wide embedding bag", "t 1000000,32; i@65536,8; r 65536,32", lambda t, i, r: (t[i].mean(1) * r).sum(), "t")
add("scatter add", "x 1048576; i@4194304; v 4194304", lambda x, i, v: x.at[i].add(v))
add("scatter rows", "x 262144,64; i@131072; v 131072,64", lambda x, i, v: x.at[i].add(v))
add("scatter max", "x 65536; i@4194304; v 4194304", lambda x, i, v: x.at[i].max(v))
add("histogram", "i@16777216", lambda i: sc.zeros(256, "int64").at[i].add(1))
add("weighted histogram", "i@16777216; w 16777216", lambda i, w: sc.zeros(1000, "float32").at[i].add(w))
add("segment sums", "x 4194304; i@4194304", lambda x, i: sc.zeros(100000, "float32").at[i].add(x))
add("graph messages", "x 100000,64; s@1000000; t@1000000",
    lambda x, s, t: sc.zeros((100000, 64), "float32").at[t].add(x[s]))
add("cumsum", "x 16777216", lambda x: sc.cumsum(x))
add("cumsum of rows", "x 4096,4096", lambda x: sc.cumsum(x, 1))
add("cumsum of columns", "x 4096,4096", lambda x: sc.cumsum(x, 0))
add("cumsum of few columns", "x 4194304,4", lambda x: sc.cumsum(x, 0))
add("cumsum gradients", "x 16777216; r 16777216", lambda x, r: (sc.cumsum(x) * r).sum(), "x")
add("cumprod", "x 64,262144", lambda x: sc.cumprod(x, 1))
add("running maximum", "x 16777216", lambda x: np.maximum.accumulate(x))
add("sort", "x 4194304", lambda x: sc.sort(x))
add("argsort of rows", "x 65536,128", lambda x: sc.argsort(x, 1))
add("top of rows", "x 65536,1000", lambda x: sc.argmax(x, 1))
add("take", "x 16777216; i@4194304", lambda x, i: x[i])
add("diff", "x 16777216", lambda x: sc.diff(x))
add("one hot", "i@65536", lambda i: (i[:, None] == sc.arange(1000)).astype("float32"))
add("reversed", "x 4096,4096", lambda x: x[::-1, ::-1])
add("rolled", "x 4096,4096", lambda x: sc.roll(x, 5, 1))
add("padded", "x 4096,4096", lambda x: sc.pad(x, 3))

# --- statistics -------------------------------------------------------------------------------------------------------

_table = "x 1048576,32"
add("column sum and maximum", _table, lambda x: [x.sum(0), x.max()])
add("mean and deviation", _table, lambda x: [x.mean(0), x.std(0)])
add("summary", "x 16777216", lambda x: [x.min(), x.max(), x.mean(), x.var()])
add("row and column sums", "x 8192,4096", lambda x: [x.sum(0), x.sum(1)])
add("row sum and maximum", "x 8192,4096", lambda x: [x.sum(1), x.max(), (x * x).mean()])
add("covariance", _table, lambda x: (x - x.mean(0)).T @ (x - x.mean(0)) / 1048575)
add("correlation", _table, lambda x: (lambda z: z.T @ z / 1048576)((x - x.mean(0)) / x.std(0)))
add("standardized", _table, lambda x: (x - x.mean(0)) / x.std(0))
add("skewness", _table, lambda x: (((x - x.mean(0)) / x.std(0)) ** 3).mean(0))
add("kurtosis", "x 16777216", lambda x: ((x - x.mean()) ** 4).mean() / x.var() ** 2)
add("argmax of columns", "x 65536,512", lambda x: sc.argmax(x, 0))
add("argmax", "x 16777216", lambda x: sc.argmax(x))
add("norms", "x 262144,64", lambda x: [sc.sqrt((x * x).sum(1)), abs(x).max(1), sc.sqrt((x * x).sum())])
add("counts", "x 16777216", lambda x: [(x > 0).sum(), (x > 1).mean(), sc.any(x > 9), sc.all(x < 10)])
add("moving average", "x 16777216", lambda x: (x[3:] + x[2:-1] + x[1:-2] + x[:-3]) / 4)
add("exponential average", "x 1024,65536", lambda x: sc.scan(lambda m, v: (0.9 * m + 0.1 * v,) * 2, x[0], x)[1])
add("kernel density", "x 8192; g 4096", lambda x, g: sc.exp(-0.5 * (g[:, None] - x) ** 2).mean(1))
add("k means", "x 1048576,16; c 64,16", lambda x, c: sc.argmin((c * c).sum(1) - 2 * x @ c.T, 1))
add("gaussian mixture", "x 262144,8; m 16,8; s 16,8", lambda x, m, s: sc.logsumexp(
    -0.5 * (((x[:, None] - m) / sc.exp(s)) ** 2).sum(-1) - s.sum(-1), 1).mean(), "m s")
add("poisson regression", "x 262144,64; w 64; b ; y 262144",
    lambda x, w, b, y: (sc.exp(x @ w + b) - y * (x @ w + b)).mean(), "w b")
add("black scholes", "s 4194304; k 4194304; t 4194304", lambda s, k, t: (lambda d: s * sc.erf(d) - k * sc.exp(
    -0.05 * t) * sc.erf(d - 0.2 * sc.sqrt(t)))((sc.log(s / k) + 0.07 * t) / (0.2 * sc.sqrt(t))).sum(), "s k t")
add("monte carlo", "z 4194304", lambda z: [sc.maximum(sc.exp(0.2 * z) - 1, 0).mean(),
                                            sc.maximum(sc.exp(0.2 * z) - 1, 0).std()])
add("rosenbrock", "x 4194304", lambda x: (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum(), "x")

# --- physics ----------------------------------------------------------------------------------------------------------


def laplace(u):
    return u[1:-1, 2:] + u[1:-1, :-2] + u[2:, 1:-1] + u[:-2, 1:-1] - 4 * u[1:-1, 1:-1]


def around(u):
    return sum(sc.roll(u, k, a) for a in (0, 1) for k in (1, -1)) - 4 * u


add("heat", "u 4096,4096", lambda u: u.at[1:-1, 1:-1].add(0.1 * laplace(u)))
add("heat steps", "u 2048,2048", lambda u: sc.fori_loop(0, 100, lambda i, u: u + 0.1 * around(u), u))
add("wave", "u 4096,4096; v 4096,4096", lambda u, v: [u + 0.1 * (v + 0.1 * around(u)), v + 0.1 * around(u)])
add("gray scott", "u 2048,2048; v 2048,2048", lambda u, v: [
    u + 0.16 * around(u) - u * v * v + 0.06 * (1 - u), v + 0.08 * around(v) + u * v * v - 0.122 * v])
add("heat in three dimensions", "u 256,256,256", lambda u: u[1:-1, 1:-1, 1:-1] + 0.1 * (
    u[2:, 1:-1, 1:-1] + u[:-2, 1:-1, 1:-1] + u[1:-1, 2:, 1:-1] + u[1:-1, :-2, 1:-1] + u[1:-1, 1:-1, 2:]
    + u[1:-1, 1:-1, :-2] - 6 * u[1:-1, 1:-1, 1:-1]))
add("energy of a field", "u 4096,4096", lambda u: ((u[1:] - u[:-1]) ** 2).sum() + ((u[:, 1:] - u[:, :-1]) ** 2).sum(),
    "u")
add("advection residual", "u 4194304; v 4194304", lambda u, v: [abs(u[1:] - v[:-1]).max(), ((u - v) ** 2).sum()])


def forces(p):
    d = p[None, :, :] - p[:, None, :]
    return (d / (sc.sqrt((d * d).sum(-1, keepdims=True) + 0.01) ** 3)).sum(1)


add("n bodies", "p 4096,3", forces)
add("n bodies step", "p 4096,3; v 4096,3", lambda p, v: [p + 0.01 * (v + 0.01 * forces(p)), v + 0.01 * forces(p)])
add("potential energy gradients", "p 2048,3", lambda p: sc.sqrt(
    ((p[None] - p[:, None]) ** 2).sum(-1) + 0.01).sum(), "p")
add("particles", "p 4194304,3; v 4194304,3", lambda p, v: [sc.where(abs(p + v) > 1, p - v, p + v),
                                                           (v * v).sum(1).mean()])
add("particles in cells", "p 4194304; q 4194304", lambda p, q: sc.zeros(4096, "float32").at[
    sc.clip((p * 4096).astype("int64"), 0, 4095)].add(q))
add("lorenz", "p 3,1048576", lambda p: sc.fori_loop(0, 50, lambda i, p: p + 0.01 * sc.stack(
    [10 * (p[1] - p[0]), p[0] * (28 - p[2]) - p[1], p[0] * p[1] - 8 / 3 * p[2]]), p))
add("mandelbrot", "a 2048,2048; b 2048,2048", lambda a, b: sc.fori_loop(0, 30, lambda i, z: (
    z[0] ** 2 - z[1] ** 2 + a, 2 * z[0] * z[1] + b), (a, b))[0])
add("complex field", "a 4194304; b 4194304", lambda a, b: abs(sc.exp(1j * a) * b))
add("cholesky", "a 1024,1024; b 1024,64", lambda a, b: sc.linalg.solve(a @ a.T, b))
add("eigh", "a 1024,1024", lambda a: sc.linalg.eigvalsh(a + a.T))
