"""Spelling of each scalar op in the text of a kernel.

An op of whose name the library has a function (its fact ``kernel``) is a call of that; the table has the others.

An entry is a template over operand expressions (``{0}``, ``{1}``) and attributes (``{order}``), or a dict of templates
by kind (b bool, i/u integers, f floats, "half" if half precision differs, c complex). Names in templates are helpers of
``symc.runtime.library.helpers``, or `math`.
"""

from __future__ import annotations

from symc.ir.dtypes import is_foreign, is_narrow
from symc.ir.op import Op, lookup
from symc.ir.ops.compare import COMPARISONS
from symc.ir.types import DTYPE_NAMES

Template = str | dict[str, str]


TABLE: dict[str, Template] = {
    "add": {"b": "({0} or {1})", "i": "wrap_add({0}, {1})", "*": "{0} + {1}"},
    "sub": {"i": "wrap_sub({0}, {1})", "*": "{0} - {1}"},
    "mul": {"b": "({0} and {1})", "i": "wrap_mul({0}, {1})", "*": "{0} * {1}"},
    "rounded_mul": "times({0}, {1})",
    "neg": {"i": "wrap_sub(0, {0})", "*": "-{0}"},
    "mulz": "({0} * {1} if {0} != 0 else zero({0}))",
    "div": {"c": "c_div({0}, {1})", "*": "{0} / {1}"},
    "floordiv": {"f": "floordiv({0}, {1})", "*": "int_floordiv({0}, {1})"},
    "mod": {"f": "mod({0}, {1})", "*": "int_mod({0}, {1})"},
    "fmod": {"f": "signed_remainder({0}, {1})", "*": "int_fmod({0}, {1})"},
    "pow": {"f": "pow({0}, {1})", "c": "c_pow({0}, {1})", "*": "int_pow({0}, {1})"},
    "abs": {"u": "{0}", "c": "c_abs({0})", "*": "abs({0})"},
    "sign": {"u": "(1 if {0} > 0 else 0)", "i": "(1 if {0} > 0 else (-1 if {0} < 0 else 0))", "f": "sign({0})",
             "c": "c_sign({0})"},
    "maximum": {"f": "maximum({0}, {1})", "b": "({0} or {1})", "*": "({0} if {0} > {1} else {1})"},
    "minimum": {"f": "minimum({0}, {1})", "b": "({0} and {1})", "*": "({0} if {0} < {1} else {1})"},
    "fmax": {"f": "fmax({0}, {1})", "b": "({0} or {1})", "*": "({0} if {0} > {1} else {1})"},
    "fmin": {"f": "fmin({0}, {1})", "b": "({0} and {1})", "*": "({0} if {0} < {1} else {1})"},
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
    "sqrt": {"c": "c_sqrt({0})", "*": "math.sqrt({0})"},
    "real": "{0}.real",
    "imag": "{0}.imag",
    "conj": "{0}.conjugate()",
    "complex": "complex({0}, {1})",
    "stop_gradient": "{0}",
    "trigamma": "polygamma(1, {0})",
    "polygamma": "polygamma({order}, {0})",
    "gamma_moment": "gamma_moment({0}, {1}, {power})",
    **{op.name: f"({{0}} {op.facts.symbol} {{1}})" for op in COMPARISONS},
}


def kind_of(dtype) -> str:
    """The kind of a dtype in the table."""
    return "half" if is_narrow(dtype) else dtype.kind


def template(op: str, kind: str) -> str | None:
    """The template for an op on operands of a dtype kind, or None where the backend has none."""
    entry = TABLE.get(op)
    if entry is None and lookup(op).facts.kernel:
        entry = _of_library(lookup(op))
    if isinstance(entry, dict):
        if kind == "half" and kind not in entry:
            kind = "f"
        return entry.get(kind, entry.get("*"))
    return entry


def _of_library(op: Op) -> Template:
    """A call of the library's function of the op's name, and of complex numbers of that with a c_ in front; or of
    SciPy's, which computes in float64."""
    if (routine := op.facts.routine) is not None:
        call = f"scipy_{routine.key}({', '.join(f'{{{k}}}' for k in range(op.facts.arity))})"
        checks = {"l": "{{{0}}} == {{{0}}}", "f": "abs({{{0}}}) < INF"}
        known = " and ".join(checks[t].format(k) for k, t in enumerate(routine.takes) if t in checks)
        return f"like({{0}}, {call} if {known} else NAN)" if known else f"like({{0}}, {call})"
    call = f"{op.name}({', '.join(f'{{{k}}}' for k in range(op.facts.arity))})"
    return {"c": "c_" + call, "*": call} if "c" in op.facts.kinds else call


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
        return f"{DTYPE_NAMES[target]}(to_i{64 if target.itemsize == 8 else 32}({{0}}))"
    if is_narrow(target):  # ``round_half`` knows doubles
        return "{0}" if source.kind == "f" and not is_foreign(target) else "f32({0})"
    return f"{DTYPE_NAMES[target]}({{0}})"
