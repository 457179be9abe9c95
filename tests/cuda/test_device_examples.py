"""The examples on a device: they say what they say on the CPU, and only arguments and results cross."""

import runpy
from functools import partial

import numpy as np
import pytest

import symc as sc
from examples import (
    char_lstm,
    cnn_digits,
    custom_op,
    gaussian_process,
    hello,
    hmc,
    kalman,
    logistic_regression,
    mlp_digits,
    newton,
    rosenbrock,
)
from symc.runtime.cuda.devices import context
from symc.testing import emulated_cuda
from tests.cuda.emulated import needs_compiler

pytestmark = needs_compiler


@pytest.fixture(autouse=True)
def device(monkeypatch):
    """The examples call ``compile`` without a device, or with the one they are given; here it is the emulated one, that
    runs kernels without checks, which other tests make."""
    with emulated_cuda(checked=False):
        compile_ = sc.compile
        on_cuda = partial(compile_, device="cuda", transfers="auto")
        monkeypatch.setattr(sc, "compile", lambda *a, **k: on_cuda(*a, **{**k, "device": "cuda", "transfers": "auto"}))
        monkeypatch.setattr(hello, "compile", sc.compile)
        yield
        found = context("cuda").device.counters
        assert found.launches > 0


def test_hello():
    np.testing.assert_array_equal(hello.main(), np.full(10, 3.0))


def test_logistic_regression():
    assert logistic_regression.main(steps=60) >= 0.9


def test_mlp_digits():
    assert mlp_digits.main(epochs=4, device="cuda") >= 0.95


def test_char_lstm(tmp_path):
    text = tmp_path / "text"
    text.write_text("a text of few letters, again and again. That is all. " * 40, encoding="utf-8")
    loss, sample = char_lstm.main(updates=25, hidden=32, batch=8, steps=12, path=text, show=False, device="cuda")
    assert loss < 3.2 and len(sample) == 300


def test_cnn_digits():
    assert cnn_digits.main(epochs=1) > 0.8


def test_rosenbrock():
    result = rosenbrock.main(size=10)
    np.testing.assert_allclose(result.x, 1, atol=1e-4)


def test_newton():
    found = newton.main(orbits=50)
    assert all(np.isfinite(a).all() for a in found)


def test_kalman():
    measured, changed, _ = kalman.main()
    np.testing.assert_allclose([measured, changed], [15099, 1469], rtol=0.01)


def test_hmc():
    accuracy, accepted = hmc.main(draws=40)
    assert accuracy > 0.9 and 0.3 < accepted <= 1


def test_gaussian_process():
    found = gaussian_process.main(patients=40, steps=5)
    assert all(np.isfinite(list(found.values())))


def test_custom_rule(own_rules):
    _, text = runpy.run_module("examples.custom_rule")["main"]()
    assert "angle_between_steps" in text


def test_custom_op():
    values, slopes = custom_op.main()
    assert np.isfinite(values).all() and np.isfinite(slopes).all()
