"""A classifier of handwritten digits: differentiated, optimized, planned and compiled by symc, trained by Adam."""

import argparse
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import symc as sc
from examples.pictures import save_graph, save_loss_curve


def load() -> list[np.ndarray]:
    """Train and test images as float32 rows in [0, 1], and their labels as int64."""
    images, labels = load_digits(return_X_y=True)
    return train_test_split((images / 16).astype("float32"), labels.astype("int64"), random_state=0)


def network(P: sc.Params, x: sc.Tensor, train: bool) -> sc.Tensor:
    """The logits of images. It makes its parameters in P when it is first called, and finds them there later."""
    h = sc.nn.dense(P.sub("hidden"), x, 256, init=sc.init.he_normal)
    h = sc.relu(sc.nn.batch_norm(P.sub("norm"), h, train))
    return sc.nn.dense(P.sub("out"), sc.nn.dropout(P, h, 0.3, train), 10)


def main(epochs: int = 40, batch: int = 64, rate: float = 3e-3, output: Path | None = None,
         device: str = "cpu") -> float:
    """Train, save pictures under ``output`` if it is given, and return the accuracy on the test images."""
    train, test, y_train, y_test = load()
    P = sc.Params(seed=0)
    x, y = sc.input("x", "float32", shape=("n", 64)), sc.input("y", "int64", shape=("n",))
    loss = sc.nn.cross_entropy(network(P, x, train=True), y)
    opt = sc.optim.adam(sc.optim.cosine(rate, epochs * len(train) // batch))
    step = sc.compile(loss, [x, y], updates=opt.updates(loss, P), name="step", device=device)
    predict = sc.compile(sc.argmax(network(P, x, train=False), axis=1), [x], name="predict", device=device,
                         transfers="auto")
    run = sc.optim.fit(step, (train, y_train), epochs, batch, progress=False)
    accuracy = float(np.mean(predict(test) == y_test))

    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        save_loss_curve(run.losses, output / "loss.png")
        save_graph(step, output / "graph.png")
        step.to_html(output / "step.html", train[:batch], y_train[:batch])
        print(step)
        print(f"open {output / 'step.html'} in a browser: stages, kernels, plan, memory and times of a training step")
    print(f"test accuracy {accuracy:.3f}")
    return accuracy


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--output", type=Path, default=Path("demo-output"), help="folder for pictures and step.html")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    arguments = parser.parse_args()
    main(epochs=arguments.epochs, output=arguments.output, device=arguments.device)
