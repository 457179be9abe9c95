"""Every example runs and does what it says, compiled and by the NumPy references."""

import runpy
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import symc as sc
from examples import (
    char_lstm,
    cnn_digits,
    custom_op,
    eight_schools,
    gaussian_process,
    hello,
    hmc,
    kalman,
    logistic_regression,
    mlp_digits,
    newton,
    radon,
    rosenbrock,
)

PNG = b"\x89PNG"


@pytest.fixture(autouse=True, params=["default", "reference"])
def mode(request, monkeypatch) -> str:
    """The examples call ``compile`` without a mode; here every call gets this one."""
    compile_ = partial(sc.compile, mode=request.param)
    monkeypatch.setattr(sc, "compile", compile_)
    monkeypatch.setattr(hello, "compile", compile_)
    return request.param


def test_hello():
    np.testing.assert_array_equal(hello.main(), np.full(10, 3.0))


def test_logistic_regression():
    assert logistic_regression.main() >= 0.95


def test_mlp_digits(mode: str, tmp_path: Path, capsys, monkeypatch):
    if mode == "reference":  # which takes a second for an epoch: what is learned in one is what is learned compiled
        learned = mlp_digits.main(epochs=1)
        monkeypatch.setattr(sc, "compile", partial(sc.compile, mode="default"))
        assert learned == pytest.approx(mlp_digits.main(epochs=1), abs=0.005) and learned > 0.85
        return
    assert mlp_digits.main(output=tmp_path) >= 0.98
    assert "func @step" in capsys.readouterr().out
    for picture in ("loss.png", "graph.png"):
        assert (tmp_path / picture).read_bytes().startswith(PNG)


def test_cnn_digits(mode: str):
    if mode == "reference":  # which takes seconds for an epoch
        assert cnn_digits.main(epochs=1) > 0.8
    else:
        assert cnn_digits.main() > 0.97


def test_rosenbrock(mode: str):
    size = 1000 if mode == "default" else 100  # which takes half as many steps
    result = rosenbrock.main(size=size)
    assert result.success
    np.testing.assert_allclose(result.x, np.ones(size), atol=1e-5)


def test_custom_op():
    x = np.linspace(-3, 3, 7)
    value, slope = custom_op.main(x)
    np.testing.assert_allclose(value, x * np.exp(-x * x), rtol=1e-12)
    np.testing.assert_allclose(slope, (1 - 2 * x * x) * np.exp(-x * x), rtol=1e-12)


def test_custom_rule(mode: str, own_rules):
    example = runpy.run_module("examples.custom_rule")
    example["test_rule"]()
    angle, rules = example["main"]()
    assert "angle_between_steps" in rules
    expected = 0 if mode == "reference" else 1 / (1 + 1e9 * (1e9 + 1))  # nothing is rewritten there
    np.testing.assert_allclose(angle, expected, rtol=1e-15)


def test_char_lstm(mode: str, monkeypatch):
    """Better than the frequencies of letters alone (3.25 nats); and a few updates are the same by the references."""
    if mode == "default":
        loss, text = char_lstm.main(40, batch=16, steps=25, show=False)
        assert loss < 3.0 and len(text) == 300 and len(set(text)) > 10
        return
    small = partial(char_lstm.main, 3, hidden=16, batch=4, steps=8, show=False)
    loss, text = small()
    monkeypatch.setattr(sc, "compile", partial(sc.compile, mode="default"))
    compiled, same = small()
    assert loss == pytest.approx(compiled, rel=1e-5) and text[:20] == same[:20]


def test_kalman():
    """The variances of Durbin and Koopman (2012), table 2.1."""
    noise, change, levels = kalman.main()
    assert noise == pytest.approx(15099, rel=0.01) and change == pytest.approx(1469, rel=0.01)
    assert levels.shape == (99,) and levels[:20].mean() > 1000 and levels[30:].mean() < 900


def test_gaussian_process():
    """The likelihood and its gradient are scikit-learn's, and predictions are better than linear regression's 0.72."""
    got = gaussian_process.main(120, steps=30)
    assert got["likelihood"] == pytest.approx(got["reference"], rel=1e-8) and got["gradient"] < 1e-5
    assert got["found"] == pytest.approx(got["again"], rel=1e-6) and got["found"] > got["likelihood"] + 3
    assert got["error"] < 0.8 and 0.9 < got["inside"] < 0.99


def test_newton():
    found, slope = newton.main(50)
    anomaly = np.linspace(0, np.pi, 50)
    assert np.abs(found - 0.7 * np.sin(found) - anomaly).max() < 1e-12
    m, e = sc.vector("m"), sc.scalar("e")
    f = sc.compile(newton.kepler(m, e), [m, e])
    np.testing.assert_allclose(slope, (f(anomaly, 0.7 + 1e-6) - f(anomaly, 0.7 - 1e-6)) / 2e-6, rtol=1e-6, atol=1e-8)


def test_eight_schools(mode: str):
    if mode == "reference":  # which takes a second for 20 draws
        assert all(np.isfinite(v) for v in eight_schools.main(warmup=5, draws=15, leaps=2).values())
    else:
        found = eight_schools.main()
        assert 0.6 < found["acceptance"] < 0.95
        assert abs(found["mu mean"] - 4.4) < 0.4 and abs(found["tau mean"] - 3.6) < 0.5
        assert all(found[f"{n} r_hat"] < 1.02 and found[f"{n} size"] > 400 for n in ("mu", "tau"))


def test_radon(mode: str):
    if mode == "reference":  # which takes milliseconds for a step
        found = radon.main(warmup=1, draws=4, chains=1)
        assert all(np.isfinite(found[name]["mean"]) for name in radon.TRUTH)
        return
    found = radon.main(warmup=300, draws=200)
    assert 0.7 < found["acceptance"] < 0.98 and not found["divergences"] and 6 < found["leaps"] < 40
    for name, true in radon.TRUTH.items():
        assert abs(found[name]["mean"] - true) < 3 * found[name]["sd"] and found[name]["r_hat"] < 1.03, name
        assert found[name]["size"] > 100, name


def test_hmc():
    accuracy, acceptance = hmc.main(draws=100)
    assert accuracy >= 0.94 and 0.6 < acceptance < 0.95
