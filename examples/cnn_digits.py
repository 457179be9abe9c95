"""A convolutional classifier of handwritten digits: one compiled step serves every batch size."""

import argparse

import numpy as np
from tqdm import tqdm

import symc as sc
from examples.mlp_digits import load, momentum


def convolution(rng: np.random.Generator, channels: int, filters: int, name: str) -> tuple[sc.Tensor, sc.Tensor]:
    """Filters of 3 x 3 scaled for ReLU, and a bias."""
    w = rng.normal(0, np.sqrt(2 / (9 * channels)), (filters, channels, 3, 3)).astype("float32")
    return sc.shared(w, f"w{name}"), sc.shared(np.zeros(filters, "float32"), f"b{name}")


def main(epochs: int = 8, batch: int = 64, rate: float = 0.15) -> float:
    """Train, and return the accuracy on the test images."""
    train, test, y_train, y_test = load()
    train, test = (images.reshape(-1, 1, 8, 8) for images in (train, test))
    rng = np.random.default_rng(0)

    x = sc.input("x", "float32", shape=("n", 1, 8, 8))
    y = sc.input("y", "int64", shape=("n",))
    w1, b1 = convolution(rng, 1, 16, "1")
    w2, b2 = convolution(rng, 16, 32, "2")
    w3 = sc.shared(rng.normal(0, 0.1, (128, 10)).astype("float32"), "w3")
    h = sc.max_pool(sc.relu(sc.conv(x, w1, b1, padding="same")), 2)
    h = sc.max_pool(sc.relu(sc.conv(h, w2, b2, padding="same")), 2)
    scores = sc.log_softmax(h.reshape((-1, 128)) @ w3, axis=1)
    loss = -sc.mean(scores[sc.arange(x.shape[0]), y])

    step = sc.compile(loss, [x, y], updates=momentum(loss, [w1, b1, w2, b2, w3], rate), name="step")
    predict = sc.compile(sc.argmax(scores, axis=1), [x], name="predict")

    progress = tqdm(range(epochs), desc="training", unit="epoch")
    for _ in progress:
        for rows in np.array_split(rng.permutation(len(train)), len(train) // batch):
            last = float(step(train[rows], y_train[rows]))
        progress.set_postfix(loss=f"{last:.4f}")
    accuracy = float(np.mean(predict(test) == y_test))
    print(f"test accuracy {accuracy:.3f}")
    return accuracy


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=8)
    main(parser.parse_args().epochs)
