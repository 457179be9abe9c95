"""Every loss against its plain formula in float64, its gradient against differences, and far from 0."""

import itertools
import math

import numpy as np
import pytest

import symc as sc

nn = sc.nn
rng = np.random.default_rng(0)
X, T = rng.normal(size=(5, 4)), rng.normal(size=(5, 4))
CLASSES = np.array([0, 3, 1, 2, 3])
BITS, SIGNS = (T > 0) * 1.0, np.where(T > 0, 1.0, -1.0)
COUNTS = np.array([[0.0, 1, 2, 5]] * 5)
PROBABILITIES = np.exp(T) / np.exp(T).sum(-1, keepdims=True)
SIGN = SIGNS[:, 0]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def log_softmax(x):
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def pick(x, classes):
    return x[np.arange(len(classes)), classes]


def norm(x):
    return np.sqrt((x**2).sum(-1))


def cosine(a, b):
    return (a * b).sum(-1) / norm(a) / norm(b)


def margins(x, classes, margin, p):
    each = np.maximum(margin - pick(x, classes)[:, None] + x, 0) ** p
    each[np.arange(len(classes)), classes] = 0
    return each.mean(-1)


#: The loss with all but the first argument given, and its formula.
LOSSES = {
    "cross_entropy": (lambda x, **k: nn.cross_entropy(x, CLASSES, **k), lambda x: -pick(log_softmax(x), CLASSES)),
    "cross_entropy of probabilities": (lambda x, **k: nn.cross_entropy(x, PROBABILITIES, **k),
                                       lambda x: -(PROBABILITIES * log_softmax(x)).sum(-1)),
    "cross_entropy, smooth": (lambda x, **k: nn.cross_entropy(x, CLASSES, label_smoothing=0.1, **k),
                              lambda x: -0.9 * pick(log_softmax(x), CLASSES) - 0.1 * log_softmax(x).mean(-1)),
    "nll": (lambda x, **k: nn.nll(x, CLASSES, **k), lambda x: -pick(x, CLASSES)),
    "binary_cross_entropy": (lambda x, **k: nn.binary_cross_entropy(x, BITS, **k),
                             lambda x: -BITS * np.log(sigmoid(x)) - (1 - BITS) * np.log(1 - sigmoid(x))),
    "focal": (lambda x, **k: nn.focal(x, BITS, **k),
              lambda x: -BITS * sigmoid(-x) ** 2 * np.log(sigmoid(x)) - (1 - BITS) * sigmoid(x) ** 2
              * np.log(sigmoid(-x))),
    "hinge": (lambda x, **k: nn.hinge(x, SIGNS, **k), lambda x: np.maximum(1 - SIGNS * x, 0)),
    "soft_margin": (lambda x, **k: nn.soft_margin(x, SIGNS, **k), lambda x: np.log(1 + np.exp(-SIGNS * x))),
    "multi_margin": (lambda x, **k: nn.multi_margin(x, CLASSES, **k), lambda x: margins(x, CLASSES, 1, 1)),
    "multi_margin, squared": (lambda x, **k: nn.multi_margin(x, CLASSES, 2.0, 2, **k),
                              lambda x: margins(x, CLASSES, 2, 2)),
    "mse": (lambda x, **k: nn.mse(x, T, **k), lambda x: (x - T) ** 2),
    "mae": (lambda x, **k: nn.mae(x, T, **k), lambda x: np.abs(x - T)),
    "huber": (lambda x, **k: nn.huber(x, T, 0.7, **k),
              lambda x: np.where(np.abs(x - T) < 0.7, (x - T) ** 2 / 2, 0.7 * (np.abs(x - T) - 0.35))),
    "log_cosh": (lambda x, **k: nn.log_cosh(x, T, **k), lambda x: np.log(np.cosh(x - T))),
    "poisson_nll": (lambda x, **k: nn.poisson_nll(x, COUNTS, full=True, **k),
                    lambda x: np.exp(x) - COUNTS * x + np.vectorize(math.lgamma)(COUNTS + 1)),
    "poisson_nll of rates": (lambda x, **k: nn.poisson_nll(sc.exp(x), COUNTS, log_input=False, **k),
                             lambda x: np.exp(x) - COUNTS * x),
    "gaussian_nll": (lambda x, **k: nn.gaussian_nll(x, T, np.exp(T), full=True, **k),
                     lambda x: 0.5 * np.log(2 * np.pi * np.exp(T)) + (x - T) ** 2 / np.exp(T) / 2),
    "gaussian_nll by variance": (lambda x, **k: nn.gaussian_nll(0.0, T, sc.exp(x), **k),
                                 lambda x: 0.5 * (x + T**2 / np.exp(x))),
    "kl_divergence": (lambda x, **k: nn.kl_divergence(sc.log_softmax(x, axis=-1), PROBABILITIES, **k),
                      lambda x: (PROBABILITIES * (np.log(PROBABILITIES) - log_softmax(x))).sum(-1)),
    "cosine_embedding": (lambda x, **k: nn.cosine_embedding(x, T, SIGN, 0.1, **k),
                         lambda x: np.where(SIGN > 0, 1 - cosine(x, T), np.maximum(cosine(x, T) - 0.1, 0))),
    "margin_ranking": (lambda x, **k: nn.margin_ranking(x, T, SIGNS, 0.5, **k),
                       lambda x: np.maximum(0.5 - SIGNS * (x - T), 0)),
    "triplet_margin": (lambda x, **k: nn.triplet_margin(x, T, T[::-1], 1.0, **k),
                       lambda x: np.maximum(1 + norm(x - T) - norm(x - T[::-1]), 0)),
}  # fmt: skip


def run(fn, *arrays, **options):
    leaves = [sc.input(f"x{k}", str(a.dtype), a.shape) for k, a in enumerate(arrays)]
    return sc.compile(fn(*leaves), leaves, **options)(*arrays)


@pytest.mark.parametrize("name", LOSSES)
def test_loss(name):
    loss, formula = LOSSES[name]
    want = formula(X)
    got = run(lambda x: [loss(x, reduction=how) for how in ("none", "mean", "sum")] + [loss(x)], X, mode="reference")
    for one, expected in zip(got, (want, want.mean(), want.sum(), want.mean()), strict=True):
        np.testing.assert_allclose(one, expected, rtol=1e-12, atol=1e-14)
    sc.verify_grad(loss, [X], modes=("rev",))


def test_losses_compiled_and_in_float32():
    losses = run(lambda x: [loss(x) for loss, _ in LOSSES.values()], X.astype("float32"))
    for name, got in zip(LOSSES, losses, strict=True):
        np.testing.assert_allclose(got, LOSSES[name][1](X).mean(), rtol=2e-6, err_msg=name)


#: Losses of logits far from 0: what they are, and their slope.
FAR = {
    "binary_cross_entropy": (lambda x: nn.binary_cross_entropy(x, 1.0), 1000.0, -1.0),
    "focal": (lambda x: nn.focal(x, 1.0), 1000.0, -1.0),
    "soft_margin": (lambda x: nn.soft_margin(x, 1.0), 1000.0, -1.0),
    "cross_entropy": (lambda x: nn.cross_entropy(sc.stack([x, 0 * x]), 0), 1000.0, -1.0),
    "log_cosh": (lambda x: nn.log_cosh(x, 0.0), 1000 - math.log(2), -1.0),
    "huber": (lambda x: nn.huber(x, 0.0), 999.5, -1.0),
    "poisson_nll": (lambda x: nn.poisson_nll(x, 1.0), 1000.0, -1.0),
}


@pytest.mark.parametrize("name", FAR)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_losses_are_stable(name, dtype):
    loss, value, slope = FAR[name]
    got = run(lambda x: [loss(x), sc.grad(loss(x), x), loss(-x), sc.grad(loss(-x), x)], np.array(-1000, dtype))
    assert np.isfinite(got[:2]).all() or name == "poisson_nll"
    np.testing.assert_allclose(got[:2], [value, slope], rtol=1e-6)
    if name not in ("log_cosh", "huber", "poisson_nll"):
        np.testing.assert_allclose(got[2:], [0, 0], atol=1e-30)


def test_what_is_ignored_counts_nothing():
    classes = np.where(CLASSES == 3, -100, CLASSES)
    got = run(lambda x: [nn.cross_entropy(x, classes, ignore=-100),
                         nn.cross_entropy(x, classes, ignore=-100, reduction="sum"),
                         sc.grad(nn.cross_entropy(x, classes, ignore=-100), x),
                         nn.cross_entropy(x, np.full(5, -100), ignore=-100)], X)
    kept = CLASSES != 3
    want = -pick(log_softmax(X), CLASSES)[kept]
    np.testing.assert_allclose(got[:2], [want.mean(), want.sum()])
    assert (got[2][~kept] == 0).all() and (got[2][kept] != 0).all() and got[3] == 0


def test_a_vector_of_length_0_has_a_cosine_and_a_distance():
    zero = np.zeros(3)
    cosine, slope, triplet = run(lambda x: [nn.cosine_similarity(x, np.ones(3)),
                                            sc.grad(nn.cosine_similarity(x, np.ones(3)), x),
                                            sc.grad(nn.triplet_margin(x, zero, np.ones(3)), x)], zero)
    assert cosine == 0 and np.isfinite(slope).all() and np.isfinite(triplet).all()


# --- ctc --------------------------------------------------------------------------------------------------------------


def ctc_by_hand(logits, target):
    """The sum over all ways to write the target."""
    p = np.exp(log_softmax(logits))
    total = 0.0
    for way in itertools.product(range(p.shape[1]), repeat=len(p)):
        if [k for k, _ in itertools.groupby(way) if k != 0] == list(target):
            total += np.prod([row[k] for row, k in zip(p, way, strict=True)])
    return -math.log(total)


def test_ctc():
    logits = rng.normal(size=(5, 6, 3))
    targets = np.array([[1, 2, 0], [1, 1, 0], [2, 0, 0], [0, 0, 0], [1, 2, 1], [2, 2, 1]])
    lengths, letters = np.array([5, 4, 2, 3, 5, 5]), np.array([2, 2, 1, 0, 3, 3])
    want = [ctc_by_hand(logits[: lengths[k], k], targets[k, : letters[k]]) for k in range(6)]

    def loss(x):
        return nn.ctc(x, targets, lengths, letters, reduction="none")

    np.testing.assert_allclose(run(loss, logits), want, rtol=1e-10)
    whole = run(lambda x: nn.ctc(x, targets[4:]), logits[:, 4:])
    np.testing.assert_allclose(whole, np.mean(want[4:]), rtol=1e-10)
    sc.verify_grad(lambda x: nn.ctc(x, targets[1:4], lengths[1:4] - 1, letters[1:4]), [logits[:4, 1:4]], modes=("rev",))


# --- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make, error, message", [
    (lambda: nn.mse(X, T[:, 0]), sc.ShapeError, "2 axes against 1"),
    (lambda: nn.cross_entropy(X, CLASSES.astype("float64")), sc.DTypeError, "classes are integers"),
    (lambda: nn.cross_entropy(X, CLASSES[:, None]), sc.ShapeError, "2 axes of numbers need 1 of classes"),
    (lambda: nn.mse(X, T, reduction="average"), sc.InputError, "mean, sum or none"),
    (lambda: nn.crossentropy, AttributeError, "did you mean 'cross_entropy'"),
])  # fmt: skip
def test_mistakes(make, error, message):
    with pytest.raises(error, match=message):
        make()
