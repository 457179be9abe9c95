"""How each scalar op is spelled in the text of a kernel: the table that a new scalar op extends by one line.

An entry is a template over operand expressions (``{0}``, ``{1}``) and attributes (``{order}``), or a dict of templates
by kind (b bool, i/u integers, f floats, "half" if half precision differs, c complex). Names in templates are helpers of
``symc.runtime.library.helpers``, or `math`.
"""

from __future__ import annotations

from symc.ir.types import DTYPE_NAMES

Template = str | dict[str, str]

_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
#: Functions of the library that vectorize, spelled like their ops: of real and complex numbers, of real ones alone.
_ELEMENTARY = ("exp", "expm1", "exp2", "log", "log1p", "log2", "log10", "tanh", "sinh", "cosh", "asinh", "acosh",
               "atanh", "asin", "acos", "atan", "sin", "cos", "tan")
_REAL = ("erf", "erfc", "erfinv", "lgamma", "digamma", "cbrt", "sigmoid", "softplus", "log1mexp")
_OF_TWO = ("hypot", "atan2", "logaddexp")
#: Ops that take time and vectorize, and those that loop or call a library for each element.
VECTORIZED = frozenset({*_ELEMENTARY, *_REAL, *_OF_TWO, "sqrt", "pow"})
_DRAWS = {1: ("unit_uniform", "unit_normal", "unit_exponential", "unit_gumbel", "normal_inverse"),
          2: ("below", "gamma_slope", "log_gamma_draw", "gamma_draw", "poisson_draw"),
          3: ("philox64", "philox32", "binomial_draw", "wald_draw")}
ONE_BY_ONE = frozenset({"erfcx", "trigamma", "polygamma", "gamma_moment", "gamma_slope", "log_gamma_draw", "gamma_draw",
                        "poisson_draw", "binomial_draw", "wald_draw"})

TABLE: dict[str, Template] = {
    "add": {"b": "({0} or {1})", "i": "wrap_add({0}, {1})", "*": "{0} + {1}"},
    "sub": {"i": "wrap_sub({0}, {1})", "*": "{0} - {1}"},
    "mul": {"b": "({0} and {1})", "i": "wrap_mul({0}, {1})", "*": "{0} * {1}"},
    "rounded_mul": "times({0}, {1})",
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
    "nextafter": {"half": "next_half({0}, {1})", "*": "nextafter({0}, {1})"},
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
    **{name: {"c": f"c_{name}({{0}})", "*": f"{name}({{0}})"} for name in _ELEMENTARY},
    **{name: f"{name}({{0}})" for name in _REAL},
    **{name: f"{name}({{0}}, {{1}})" for name in _OF_TWO},
    "sqrt": {"c": "c_sqrt({0})", "*": "math.sqrt({0})"},
    "real": "{0}.real",
    "imag": "{0}.imag",
    "conj": "{0}.conjugate()",
    "complex": "complex({0}, {1})",
    "stop_gradient": "{0}",
    "erfcx": "erfcx({0})",
    "trigamma": "polygamma(1, {0})",
    "polygamma": "polygamma({order}, {0})",
    "gamma_moment": "gamma_moment({0}, {1}, {power})",
    **{name: f"{name}({', '.join(f'{{{k}}}' for k in range(arity))})" for arity, names in _DRAWS.items()
       for name in names},
    **{name: f"({{0}} {sign} {{1}})" for name, sign in _COMPARE.items()},
}


def kind_of(dtype) -> str:
    """The kind of a dtype in the table."""
    return "half" if dtype.char == "e" else dtype.kind


def template(op: str, kind: str) -> str | None:
    """The template for an op on operands of a dtype kind, or None where the backend has none."""
    entry = TABLE.get(op)
    if isinstance(entry, dict):
        if kind == "half" and kind not in entry:
            kind = "f"
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
    if target.kind == "f" and target.itemsize == 2:
        return "{0}" if source.kind == "f" else "f32({0})"  # ``round_half`` knows doubles
    return f"{DTYPE_NAMES[target]}({{0}})"
