"""A convolutional classifier of handwritten digits: one compiled step serves every batch size."""

import argparse

import numpy as np

import symc as sc
from examples.mlp_digits import load


def network(P: sc.Params, x: sc.Tensor) -> sc.Tensor:
    """The logits of images, by two convolutions."""
    for name, filters in (("first", 16), ("second", 32)):
        x = sc.nn.convolution(P.sub(name), x, filters, 3, padding="same", activation="relu", init=sc.init.he_normal)
        x = sc.max_pool(x, 2)
    return sc.nn.dense(P.sub("out"), x.reshape((-1, 128)), 10)


def main(epochs: int = 8, batch: int = 64, rate: float = 6e-3) -> float:
    """Train, and return the accuracy on the test images."""
    train, test, y_train, y_test = load()
    train, test = (images.reshape(-1, 1, 8, 8) for images in (train, test))

    x = sc.input("x", "float32", shape=("n", 1, 8, 8))
    y = sc.input("y", "int64", shape=("n",))
    P = sc.Params(seed=0)
    scores = network(P, x)
    loss = sc.nn.cross_entropy(scores, y)
    step = sc.compile(loss, [x, y], updates=sc.optim.adam(rate).updates(loss, P), name="step")
    predict = sc.compile(sc.argmax(scores, axis=1), [x], name="predict")

    sc.optim.fit(step, (train, y_train), epochs, batch)
    accuracy = float(np.mean(predict(test) == y_test))
    print(f"test accuracy {accuracy:.3f}")
    return accuracy


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=8)
    main(parser.parse_args().epochs)
