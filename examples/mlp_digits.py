"""A classifier of handwritten digits: differentiated, optimized, planned and compiled by symc, trained by momentum."""

import argparse
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tqdm import tqdm

import symc as sc
from examples.pictures import save_graph, save_loss_curve


def load() -> list[np.ndarray]:
    """Train and test images as float32 rows in [0, 1], and their labels as int64."""
    images, labels = load_digits(return_X_y=True)
    return train_test_split((images / 16).astype("float32"), labels.astype("int64"), random_state=0)


def layer(rng: np.random.Generator, n_in: int, n_out: int, name: str) -> tuple[sc.Tensor, sc.Tensor]:
    """Weights (n_in, n_out) scaled for ReLU, and a bias."""
    w = rng.normal(0, np.sqrt(2 / n_in), (n_in, n_out)).astype("float32")
    return sc.shared(w, f"w{name}"), sc.shared(np.zeros(n_out, "float32"), f"b{name}")


def momentum(loss: sc.Tensor, params: list[sc.Tensor], rate: float, keep: float = 0.9) -> dict[sc.Tensor, sc.Tensor]:
    """The updates of one step of gradient descent with momentum."""
    updates = {}
    for p, g in zip(params, sc.grad(loss, params)):
        v = sc.shared(np.zeros_like(p.get_value()), f"v_{p.name}")
        updates[v] = keep * v - rate * g
        updates[p] = p + updates[v]
    return updates


def main(epochs: int = 30, batch: int = 64, hidden: int = 128, rate: float = 0.1, output: Path | None = None,
         device: str = "cpu") -> float:
    """Train, save pictures under ``output`` if it is given, and return the accuracy on the test images."""
    train, test, y_train, y_test = load()
    rng = np.random.default_rng(0)

    x = sc.input("x", "float32", shape=("n", train.shape[1]))
    y = sc.input("y", "int64", shape=("n",))
    w1, b1 = layer(rng, train.shape[1], hidden, "1")
    w2, b2 = layer(rng, hidden, 10, "2")
    logits = sc.maximum(x @ w1 + b1, 0) @ w2 + b2
    loss = sc.mean(sc.logsumexp(logits, axis=1) - sc.sum(logits * sc.one_hot(y, 10, dtype="float32"), axis=1))

    step = sc.compile(loss, [x, y], updates=momentum(loss, [w1, b1, w2, b2], rate), name="step",
                      device=device)
    predict = sc.compile(sc.argmax(logits, axis=1), [x], name="predict", device=device, transfers="auto")

    losses = []
    progress = tqdm(range(epochs), desc="training", unit="epoch")
    for _ in progress:
        for rows in np.array_split(rng.permutation(len(train)), len(train) // batch):
            losses.append(float(step(train[rows], y_train[rows])))
        progress.set_postfix(loss=f"{losses[-1]:.4f}")
    accuracy = float(np.mean(predict(test) == y_test))

    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        save_loss_curve(losses, output / "loss.png")
        save_graph(step, output / "graph.png")
        print(step)
    print(f"test accuracy {accuracy:.3f}")
    return accuracy


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--output", type=Path, default=Path("demo-output"), help="folder for loss.png and graph.png")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    arguments = parser.parse_args()
    main(epochs=arguments.epochs, output=arguments.output, device=arguments.device)
