"""Every example runs, with parameters that keep it short, and does what it says."""

from pathlib import Path

import numpy as np

from examples import custom_op, custom_rule, hello, logistic_regression, mlp_digits, rosenbrock

PNG = b"\x89PNG"


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


def test_custom_rule():
    assert "cosh" in custom_rule.main()
    custom_rule.test_rule()
