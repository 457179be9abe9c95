"""Logistic regression on the breast-cancer data, by full-batch gradient descent on shared state."""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import symc as sc


def load() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Train and test rows, standardised by the mean and deviation of the training rows, and their 0/1 labels."""
    rows, labels = load_breast_cancer(return_X_y=True)
    train, test, y_train, y_test = train_test_split(rows, labels.astype(float), random_state=0)
    mean, deviation = train.mean(axis=0), train.std(axis=0)
    return (train - mean) / deviation, (test - mean) / deviation, y_train, y_test


def main(steps: int = 300, rate: float = 0.3, decay: float = 1e-3) -> float:
    """Train for ``steps`` steps and return the accuracy on the test rows."""
    train, test, y_train, y_test = load()

    x = sc.input("x", "float64", shape=("n", train.shape[1]))
    y = sc.input("y", "float64", shape=("n",))
    w = sc.shared(np.zeros(train.shape[1]), "w")
    b = sc.shared(np.zeros(()), "b")
    logit = x @ w + b
    loss = sc.mean(sc.softplus(logit) - y * logit) + decay * sc.sum(w * w)

    dw, db = sc.grad(loss, (w, b))
    step = sc.compile(loss, [x, y], updates={w: w - rate * dw, b: b - rate * db})
    predict = sc.compile(logit > 0, [x])

    for _ in range(steps):
        cost = step(train, y_train)
    accuracy = float(np.mean(predict(test) == y_test))
    print(f"loss {float(cost):.4f} after {steps} steps, test accuracy {accuracy:.3f}")
    return accuracy


if __name__ == "__main__":
    main()
