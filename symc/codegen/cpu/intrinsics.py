"""How each scalar op is spelled in the text of a kernel: the table that a new scalar op extends by one line.

An entry is a template over operand expressions (``{0}``, ``{1}``) and attributes (``{order}``), or a dict of templates
by dtype kind (b bool, i/u integers, f floats, c complex). Names in templates are helpers of
``symc.runtime.library.helpers``, or `math`.
"""

from __future__ import annotations

from symc.ir.types import DTYPE_NAMES

Template = str | dict[str, str]

_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_MATH = ("sqrt", "lgamma")  # of the C library
_OWN = ("exp", "expm1", "exp2", "log", "log1p", "log2", "log10", "tanh", "sinh", "cosh", "asinh", "acosh", "atanh",
        "asin", "acos", "atan", "sin", "cos", "tan", "erf", "erfc")

TABLE: dict[str, Template] = {
    "add": {"b": "({0} or {1})", "i": "wrap_add({0}, {1})", "*": "{0} + {1}"},
    "sub": {"i": "wrap_sub({0}, {1})", "*": "{0} - {1}"},
    "mul": {"b": "({0} and {1})", "i": "wrap_mul({0}, {1})", "*": "{0} * {1}"},
    "neg": "-{0}",
    "mulz": "({0} * {1} if {0} != 0 else zero({0}))",
    "div": {"c": "c_div({0}, {1})", "*": "{0} / {1}"},
    "floordiv": {"f": "floordiv({0}, {1})", "*": "int_floordiv({0}, {1})"},
    "mod": {"f": "mod({0}, {1})", "*": "int_mod({0}, {1})"},
    "fmod": {"f": "fmod({0}, {1})", "*": "int_fmod({0}, {1})"},
    "pow": {"f": "pow({0}, {1})", "c": "c_pow({0}, {1})", "*": "int_pow({0}, {1})"},
    "abs": {"u": "{0}", "c": "c_abs({0})", "*": "abs({0})"},
    "sign": {"u": "(1 if {0} > 0 else 0)", "i": "(1 if {0} > 0 else (-1 if {0} < 0 else 0))", "f": "sign({0})",
             "c": "c_sign({0})"},
    "maximum": {"f": "maximum({0}, {1})", "b": "({0} or {1})", "*": "({0} if {0} > {1} else {1})"},
    "minimum": {"f": "minimum({0}, {1})", "b": "({0} and {1})", "*": "({0} if {0} < {1} else {1})"},
    "fmax": {"f": "fmax({0}, {1})", "b": "({0} or {1})", "*": "({0} if {0} > {1} else {1})"},
    "fmin": {"f": "fmin({0}, {1})", "b": "({0} and {1})", "*": "({0} if {0} < {1} else {1})"},
    "copysign": "copysign({0}, {1})",
    "hypot": "hypot({0}, {1})",
    "atan2": "atan2({0}, {1})",
    "and": {"b": "({0} and {1})", "*": "{0} & {1}"},
    "or": {"b": "({0} or {1})", "*": "{0} | {1}"},
    "xor": {"b": "({0} != {1})", "*": "{0} ^ {1}"},
    "not": {"b": "(not {0})", "*": "~{0}"},
    "shl": "shift_left({0}, {1})",
    "shr": "shift_right({0}, {1})",
    "where": "({1} if {0} else {2})",
    "isnan": {"f": "({0} != {0})", "c": "c_isnan({0})", "*": "False"},
    "isinf": {"f": "(abs({0}) == inf({0}))", "c": "c_isinf({0})", "*": "False"},
    "isfinite": {"f": "(abs({0}) < inf({0}))", "c": "c_isfinite({0})", "*": "True"},
    "signbit": {"f": "(math.copysign(1.0, {0}) < 0)", "u": "False", "*": "({0} < 0)"},
    **{name: f"{name}({{0}})" for name in ("floor", "ceil", "trunc", "rint")},
    **{name: {"c": f"c_{name}({{0}})", "*": f"{name}({{0}})"}
       for name in _OWN},
    "real": "{0}.real",
    "imag": "{0}.imag",
    "conj": "{0}.conjugate()",
    "complex": "complex({0}, {1})",
    "cbrt": "cbrt({0})",
    "sigmoid": "sigmoid({0})",
    "softplus": "softplus({0})",
    "logaddexp": "logaddexp({0}, {1})",
    "log1mexp": "log1mexp({0})",
    "stop_gradient": "{0}",
    **{name: f"{name}({{0}})" for name in ("digamma", "erfinv", "erfcx")},
    "trigamma": "polygamma(1, {0})",
    "polygamma": "polygamma({order}, {0})",
    **{name: f"{name}({{0}})" for name in ("unit_uniform", "unit_normal", "unit_exponential", "normal_inverse")},
    **{name: f"{name}({{0}}, {{1}})" for name in ("below", "gamma_slope", "log_gamma_draw", "gamma_draw",
                                                 "poisson_draw")},
    **{name: f"{name}({{0}}, {{1}}, {{2}})" for name in ("philox64", "philox32", "binomial_draw", "wald_draw")},
    **{name: f"({{0}} {sign} {{1}})" for name, sign in _COMPARE.items()},
    **{name: {"c": f"c_{name}({{0}})", "*": f"math.{name}({{0}})"} for name in _MATH},
}

def template(op: str, kind: str) -> str | None:
    """The template for an op on operands of a dtype kind, or None where the backend has none."""
    entry = TABLE.get(op)
    if isinstance(entry, dict):
        return entry.get(kind, entry.get("*"))
    return entry


def cast_template(source, target) -> str | None:
    """A conversion between dtypes, as NumPy's astype does it."""
    if target.kind == "b":
        return "({0} != 0)"
    if target.kind == "c":
        return DTYPE_NAMES[target] + ("({0})" if source.kind == "c" else "(complex(f64({0}), 0.0))")
    if source.kind == "c":
        form = cast_template(source.type(0).real.dtype, target)
        return form and form.format("{0}.real")
    if source.kind == "f" and target.kind in "iu":
        return f"{DTYPE_NAMES[target]}(to_int({{0}}))"
    return f"{'f32' if target.itemsize == 2 and target.kind == 'f' else DTYPE_NAMES[target]}({{0}})"
