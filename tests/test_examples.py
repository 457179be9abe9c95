"""Every example runs and does what it says, compiled and by the NumPy references."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

import symc as sc
from examples import custom_op, custom_rule, hello, logistic_regression, mlp_digits, rosenbrock

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


def test_mlp_digits(tmp_path: Path, capsys):
    assert mlp_digits.main(output=tmp_path) >= 0.97
    assert "func @step" in capsys.readouterr().out
    for picture in ("loss.png", "graph.png"):
        assert (tmp_path / picture).read_bytes().startswith(PNG)


def test_rosenbrock():
    result = rosenbrock.main(size=1000)
    assert result.success
    np.testing.assert_allclose(result.x, np.ones(1000), atol=1e-5)


def test_custom_op():
    x = np.linspace(-3, 3, 7)
    value, slope = custom_op.main(x)
    np.testing.assert_allclose(value, x * np.exp(-x * x), rtol=1e-12)
    np.testing.assert_allclose(slope, (1 - 2 * x * x) * np.exp(-x * x), rtol=1e-12)


def test_custom_rule(mode: str):
    custom_rule.test_rule()
    loss, rules = custom_rule.main()
    assert "log_cosh" in rules
    expected = np.inf if mode == "reference" else 1000 - np.log(2)  # nothing is rewritten there, and cosh overflows
    np.testing.assert_allclose(loss, expected, rtol=1e-15)
