"""The functions of numbers that kernels call, in their language: read by its compilers and printers, never run.

A module is imported when a kernel first calls one of its functions.
"""

from __future__ import annotations

import functools
import importlib
import math
from typing import Any

from symc.codegen.language import names
from symc.codegen.language.helpers import Helper, Widths

#: The functions that texts of kernels call, by the module that has them.
FUNCTIONS: dict[str, str] = {
    "math": "exp expm1 log log1mexp log1p logaddexp next_half nextafter sigmoid softplus tanh",
    "power": "cbrt exp2 hypot log10 log2 pow",
    "error": "erf erfc erfcx_number erfinv",
    "hyperbolic": "acosh asinh atanh cosh sinh",
    "angles": "acos asin atan atan2",
    "trig": "cos sin tan",
    "gamma": "digamma lgamma",
    "random": "normal_inverse philox32 philox64 unit_exponential unit_gumbel unit_normal unit_uniform "
              "wide_product",
    "draws": "below binomial_draw gamma_draw log_gamma_draw poisson_draw wald_draw",
    "moments": "gamma_moment gamma_slope",
    "special": "erfcx polygamma zeta",
    "complex_parts": "c_acos c_acosh c_asin c_asinh c_atan c_atanh c_cos c_cosh c_exp c_log c_sin c_sinh c_sqrt c_tan "
                     "c_tanh",
    "complex": "c_abs c_div c_exp2 c_expm1 c_isfinite c_isinf c_isnan c_log10 c_log1p c_log2 c_pow c_sign",
    "helpers": "floordiv fmax fmin gcd inf int_floordiv int_fmod int_mod int_pow mod round_half shift_left "
               "shift_right sign signed_remainder sorts_before zero",
}
MODULE_OF = {name: module for module, found in FUNCTIONS.items() for name in found.split()}
_NUMBERS = {"INF": names.INF, "NAN": names.NAN, "math": math}


@functools.cache
def meaning(name: str) -> Any:
    """Meaning of a name in the text of a kernel: a function of the library, a number; None if nothing."""
    if name in MODULE_OF:
        return getattr(importlib.import_module(f"{__name__}.{MODULE_OF[name]}"), name)
    return _NUMBERS.get(name)


def helper(name: str) -> Helper | Widths | None:
    """The function of the library that texts of kernels call so."""
    found = meaning(name)
    return found if isinstance(found, Helper | Widths) else None
