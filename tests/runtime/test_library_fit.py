"""The coefficients in the library of kernel functions are those that its fits give."""

from __future__ import annotations

from pathlib import Path

import mpmath
import pytest

import symc.runtime.library
from tests.runtime.fits import FITS, Fit, fit, shown

SOURCES = "".join(p.read_text("utf-8") for p in sorted(Path(symc.runtime.library.__file__).parent.glob("*.py")))
QUICK = ("exp32", "sin64", "cos64", "atan64", "atanh64", "cbrt64", "lgamma_far64", "sin32", "cos32", "atan32",
         "atanh32", "cbrt32", "lgamma_near32", "lgamma_far32", "digamma_far32")


@pytest.mark.parametrize("name", QUICK)
def test_sources_have_what_is_fitted(name):
    coefficients, error = fit(FITS[name])
    for c in coefficients:
        assert shown(c, FITS[name].bits).removeprefix("-") in SOURCES
    assert error < (2.0**-53 if FITS[name].bits == 53 else 2.0**-24) or name.startswith(("cbrt", "lgamma_near"))


def test_a_fit_is_as_good_as_theory_says():
    """Chebyshev: x**4 by lower powers on [-1, 1] is off by 1/8."""
    coefficients, error = fit(Fit(lambda mp, x: x**4, 4, -1, 1, lambda mp, x: mp.mpf(1)))
    assert abs(error - 0.125) < 1e-9
    assert [round(float(c), 9) for c in coefficients] == [-0.125, 0.0, 1.0, 0.0]
    assert mpmath.mp.prec == 53, "the precision of others is left as it was"
