"""Functions in C for what the language calls and C has not: each by its name, with what it needs before."""

from __future__ import annotations

_BITS = """static inline {to} {name}({source} x) {{
  {to} y;
  memcpy(&y, &x, sizeof y);
  return y;
}}
"""
_EXTREME = """static inline {t} {name}({t} a, {t} b) {{
  if (a {sign} b || a != a) return a;
  return a == b && {first}signbit(a) ? a : b;
}}
"""
_FOLDED = """static inline {t} {name}({t} a, {t} b) {{ return a {sign} b || a != a ? a : b; }}
"""
_FLOOR = """static inline int64_t {name}(int64_t x, int64_t y) {{
  const int64_t q = x / y, r = x % y;
  const bool off = r != 0 && (x ^ y) < 0;
  return {found};
}}
"""
_CHOICE = """static inline {t} {name}({t} a, {t} b) {{ return a {sign} b ? a : b; }}
"""

#: C's names of the types of scalars.
TYPES = {"bool": "bool", "f32": "float", "f64": "double", "c64": "float complex", "c128": "double complex"} | {
    f"{letter}{w}": f"{'u' * (letter == 'u')}int{w}_t" for letter in "iu" for w in (8, 16, 32, 64)}

#: Text and needs.
FUNCTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    name: (_BITS.format(name=name, source=source, to=to), ()) for name, source, to in (
        ("bits64", "double", "int64_t"), ("float64_of", "int64_t", "double"), ("bits32", "float", "int32_t"),
        ("float32_of", "int32_t", "float"))
} | {
    f"{name}_{t}": (_EXTREME.format(name=f"{name}_{t}", t=TYPES[t], sign=sign, first=first), ())
    for name, sign, first in (("maximum", ">", "!"), ("minimum", "<", "")) for t in ("f32", "f64")
} | {
    f"fold_{name}_{t}": (_FOLDED.format(name=f"fold_{name}_{t}", t=TYPES[t], sign=sign), ())
    for name, sign in (("maximum", ">"), ("minimum", "<")) for t in ("f32", "f64")
} | {
    f"{name}_{t}": (_CHOICE.format(name=f"{name}_{t}", t=TYPES[t], sign=sign), ())
    for name, sign in (("min", "<"), ("max", ">")) for t in ("f32", "f64", "i64", "u64")
} | {
    "floor_divide": (_FLOOR.format(name="floor_divide", found="q - off"), ()),
    "floor_modulo": (_FLOOR.format(name="floor_modulo", found="off ? r + y : r"), ()),
    "minus_zero": ("double minus_zero = -0.0;\n", ()),
    **{f"times_{t}": (f"static inline {TYPES[t]} times_{t}({TYPES[t]} x, {TYPES[t]} y) {{\n"
                      f"  return x * y + ({TYPES[t]})minus_zero;\n}}\n", ("minus_zero",)) for t in ("f32", "f64")},
    "absolute": ("static inline int64_t absolute(int64_t x) { return x < 0 ? (int64_t)(0 - (uint64_t)x) : x; }\n", ()),
    "to_int": ("""static inline int64_t to_int(double x) {
  return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN;
}
""", ()),
    "from_half": ("""static inline float from_half(uint16_t h) {
  const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, size = h & 0x7fffu;
  if (size < 0x0400u) return float32_of((int32_t)((uint32_t)bits32((float)size * 0x1p-24f) | sign));
  return float32_of((int32_t)(sign | ((size << 13) + (size < 0x7c00u ? 0x38000000u : 0x70000000u))));
}
""", ("bits32", "float32_of")),
    "to_half_f32": ("""static inline uint16_t to_half_f32(float x) {
  const uint32_t b = (uint32_t)bits32(x), size = b & 0x7fffffffu;
  const uint16_t sign = (uint16_t)(b >> 16 & 0x8000u);
  if (size > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | (size >> 13 & 0x3ffu));
  if (size >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u);
  if (size < 0x38800000u) return (uint16_t)(sign | (uint32_t)rintf(float32_of((int32_t)size) * 0x1p24f));
  return (uint16_t)(sign | (size + 0xc8000fffu + (size >> 13 & 1u)) >> 13);
}
""", ("bits32", "float32_of")),
    "to_half_f64": ("""static inline uint16_t to_half_f64(double x) { /* rounded once: first to odd */
  const float near_ = (float)x;
  const uint64_t there = (uint64_t)bits64(x), back = (uint64_t)bits64((double)near_);
  return to_half_f32(float32_of((int32_t)(((uint32_t)bits32(near_) - (back > there)) | (back != there))));
}
""", ("bits64", "bits32", "float32_of", "to_half_f32")),
}

HEAD = """#include <complex.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#ifndef CMPLX
#define CMPLX(x, y) ((double complex)((x) + I * (y)))
#define CMPLXF(x, y) ((float complex)((x) + I * (y)))
#endif
"""
