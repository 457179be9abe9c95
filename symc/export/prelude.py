"""Functions in C that an exported entry calls: copies, products by plain loops or CBLAS, and factorizations.

Texts for one letter of BLAS at a time: ``{l}`` is the letter, ``{T}`` the type of elements, ``{R}`` that of their real
parts, ``{abs}`` and ``{conj}`` the functions of ``math.h`` or ``complex.h``.
"""

from __future__ import annotations

from symc.codegen.c.prelude import TYPES
from symc.export import array_prelude

#: Sizes of arrays.
SIZES = """static inline int64_t size_least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t size_most(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t size_divide(int64_t a, int64_t b) { return b == 0 ? 0 : a / b - (a % b != 0 && (a ^ b) < 0); }
static inline int64_t size_modulo(int64_t a, int64_t b) { return b == 0 ? 0 : a - b * size_divide(a, b); }
"""
_BYTES = """static inline void copy(void *to, const void *from, int64_t bytes) {
  if (to != from && bytes > 0) memmove(to, from, (size_t)bytes);
}
static inline void clear(void *to, int64_t bytes) {
  if (bytes > 0) memset(to, 0, (size_t)bytes);
}
"""

_ALL = """/* Are all of n bytes true? */
static bool all_true(const void *x, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    if (!((const unsigned char *)x)[i]) return false;
  }
  return true;
}
"""

#: How products are computed elsewhere: by CBLAS where it is linked, or by functions that are given at run time.
_CBLAS = """#if defined({NAME}_USE_CBLAS)
#include <cblas.h>
#define {NAME}_BLAS_ABOVE 512
#elif defined({NAME}_BLAS_AT_RUN_TIME)
/* Functions with the arguments of cblas_?gemm whose integers have 64 bits, in the order s, d, c, z. */
typedef void (*blas_s)(int, int, int, int64_t, int64_t, int64_t, float, const void *, int64_t, const void *, int64_t,
                       float, void *, int64_t);
typedef void (*blas_d)(int, int, int, int64_t, int64_t, int64_t, double, const void *, int64_t, const void *, int64_t,
                       double, void *, int64_t);
typedef void (*blas_z)(int, int, int, int64_t, int64_t, int64_t, const void *, const void *, int64_t, const void *,
                       int64_t, const void *, void *, int64_t);
static struct {{ blas_s s; blas_d d; blas_z c, z; }} blas;
{EXPORT}void {name}_use_blas(blas_s s, blas_d d, blas_z c, blas_z z) {{
  blas.s = s, blas.d = d, blas.c = c, blas.z = z;
}}
#define {NAME}_BLAS_ABOVE 512
#endif
"""

_PRODUCT = """
/* c += alpha * x * a, where a has m rows of k numbers that are multiplied by those of x, or k rows of m. */
{CLONES}static void vector_{l}(bool rows, int64_t m, int64_t k, {T} alpha, const {T} *restrict a, const {T} *restrict x,
                     {T} *restrict c) {{
  if (!rows) {{
    for (int64_t p = 0; p < k; p++) {{
      const {T} y = alpha * x[p];
      for (int64_t i = 0; i < m; i++) c[i] += y * a[p * m + i];
    }}
    return;
  }}
  for (int64_t i = 0; i < m; i++) {{
    {T} sums[{WIDE}] = {{0}}, sum = 0;
    int64_t p = 0;
    for (; p + {WIDE} <= k; p += {WIDE}) {{
      for (int q = 0; q < {WIDE}; q++) sums[q] += a[i * k + p + q] * x[p + q];
    }}
    for (; p < k; p++) sum += a[i * k + p] * x[p];
    for (int q = 0; q < {WIDE}; q++) sum += sums[q];
    c[i] += alpha * sum;
  }}
}}

/* Four rows of a times {WIDE} columns of b, whose rows are so far apart. */
#define STEP_{l}(r) {NAME}_AS_LOOP \\
  for (int q = 0; q < {WIDE}; q++) sums[r][q] += row[r][p * ak] * columns[p * apart + q]

/* c = alpha * a * b, or that more if add, with rows of n numbers in c, m of them. ta, tb: a, b are transposed in
   memory. */
{CLONES}static void product_{l}(bool add, bool ta, bool tb, int64_t m, int64_t n, int64_t k, {T} alpha,
                      const {T} *restrict a, const {T} *restrict b, {T} *restrict c) {{
  const bool few = {few}; /* rows of a, so that b is read where it lies, by no BLAS */
{BLAS}
  if (!add) clear(c, m * n * (int64_t)sizeof(*c));
  if (m < 1 || n < 1 || k < 1) return;
  if (n == 1) {{
    vector_{l}(!ta, m, k, alpha, a, b, c);
    return;
  }}
  if (m == 1) {{
    vector_{l}(tb, n, k, alpha, b, a, c);
    return;
  }}
  const int64_t ai = ta ? 1 : k, ak = ta ? m : 1, bk = tb ? 1 : n, bj = tb ? k : 1;
  {T} tile[128 * {WIDE}], sums[4][{WIDE}];
  for (int64_t first = 0; first < k; first += 128) {{
    const int64_t depth = size_least(128, k - first);
    for (int64_t j = 0; j < n; j += {WIDE}) {{
      const int64_t wide = size_least({WIDE}, n - j);
      const {T} *const columns = few ? b + first * n + j : tile;
      const int64_t apart = few ? n : {WIDE};
      for (int64_t p = 0; !few && p < depth; p++) {{
        {T} *const to = tile + p * {WIDE};
        for (int64_t q = 0; q < {WIDE}; q++) to[q] = q < wide ? b[(first + p) * bk + (j + q) * bj] : 0;
      }}
      for (int64_t i = 0; i < m; i += 4) {{
        const int64_t tall = size_least(4, m - i);
        const {T} *row[4];
        for (int r = 0; r < 4; r++) row[r] = a + size_least(i + r, m - 1) * ai + first * ak;
        for (int r = 0; r < 4; r++) {{
          for (int q = 0; q < {WIDE}; q++) sums[r][q] = 0;
        }}
        for (int64_t p = 0; p < depth; p++) {{
          STEP_{l}(0);
          STEP_{l}(1);
          STEP_{l}(2);
          STEP_{l}(3);
        }}
        for (int64_t r = 0; r < tall; r++) {{
          for (int64_t q = 0; q < wide; q++) c[(i + r) * n + j + q] += alpha * sums[r][q];
        }}
      }}
    }}
  }}
}}
"""
_BY_CBLAS = """#ifdef {NAME}_USE_CBLAS
  if (!few && (double)m * (double)n * (double)k > {NAME}_BLAS_ABOVE && alpha != 0 && m < INT32_MAX && n < INT32_MAX &&
      k < INT32_MAX) {{
    const {T} one = add;
    cblas_{l}gemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans, (int)m, (int)n, (int)k,
                {a}alpha, a, (int)(ta ? m : k), b, (int)(tb ? k : n), {a}one, c, (int)n);
    return;
  }}
#elif defined({NAME}_BLAS_AT_RUN_TIME)
  if (!few && blas.{l} && (double)m * (double)n * (double)k > {NAME}_BLAS_ABOVE && alpha != 0) {{
    const {T} one = add;
    blas.{l}(101, ta ? 112 : 111, tb ? 112 : 111, m, n, k, {a}alpha, a, ta ? m : k, b, tb ? k : n, {a}one, c, n);
    return;
  }}
#endif"""

_SCALE = """
{CLONES}static void scale_{l}(int64_t n, {T} by, const {T} *x, {T} *y) {{
  for (int64_t i = 0; i < n; i++) y[i] = by * x[i];
}}
"""

_CHOLESKY = """
/* The lower triangle c of a = c * c^H. False if a is not positive definite. */
{CLONES}static bool cholesky_{l}(int64_t n, const {T} *a, {T} *c) {{
  for (int64_t i = 0; i < n; i++) {{
    for (int64_t j = 0; j <= i; j++) {{
      {T} sum = a[i * n + j];
      for (int64_t p = 0; p < j; p++) sum -= c[i * n + p] * {conj}(c[j * n + p]);
      if (j < i) {{
        c[i * n + j] = sum / c[j * n + j];
      }} else {{
        const {R} pivot = {real}(sum);
        if (!(pivot > 0)) return false;
        c[i * n + i] = {sqrt}(pivot);
      }}
    }}
    for (int64_t j = i + 1; j < n; j++) c[i * n + j] = 0;
  }}
  return true;
}}
"""

_TRIANGULAR = """
/* Solve op(a) x = b in place of b, n rows of k numbers; op: 'n' a itself, 't' its transpose, 'c' conjugated, too. False
   if a number of the diagonal is 0. */
{CLONES}static bool triangular_{l}(bool lower, char op, bool unit, int64_t n, int64_t k, const {T} *a, {T} *x) {{
  const int64_t down = op == 'n' ? n : 1, right = op == 'n' ? 1 : n;
  const bool forward = lower == (op == 'n');
  for (int64_t i = 0; !unit && i < n; i++) {{
    if (a[i * n + i] == 0) return false;
  }}
  for (int64_t step = 0; step < n; step++) {{
    const int64_t i = forward ? step : n - 1 - step;
    {T} *restrict row = x + i * k;
    for (int64_t j = forward ? 0 : i + 1; j < (forward ? i : n); j++) {{
      const {T} raw = a[i * down + j * right], factor = op == 'c' ? {conj}(raw) : raw;
      const {T} *restrict other = x + j * k;
      for (int64_t q = 0; q < k; q++) row[q] -= factor * other[q];
    }}
    const {T} pivot = op == 'c' ? {conj}(a[i * n + i]) : a[i * n + i];
    for (int64_t q = 0; !unit && q < k; q++) row[q] = row[q] / pivot;
  }}
  return true;
}}
"""

_LU = """
static inline {R} size_of_{l}({T} x) {{ return {abs}; }}
/* a[order] = L * U, both in lu; a pivot may be 0. */
{CLONES}static void lu_factor_{l}(int64_t n, const {T} *a, {T} *lu, int64_t *order) {{
  copy(lu, a, n * n * (int64_t)sizeof(*a));
  for (int64_t i = 0; i < n; i++) order[i] = i;
  for (int64_t i = 0; i < n; i++) {{
    int64_t best = i;
    for (int64_t r = i + 1; r < n; r++) {{
      if (size_of_{l}(lu[r * n + i]) > size_of_{l}(lu[best * n + i])) best = r;
    }}
    for (int64_t q = 0; best != i && q < n; q++) {{
      const {T} x = lu[i * n + q];
      lu[i * n + q] = lu[best * n + q], lu[best * n + q] = x;
    }}
    const int64_t place = order[i];
    order[i] = order[best], order[best] = place;
    const {T} pivot = lu[i * n + i];
    for (int64_t r = i + 1; pivot != 0 && r < n; r++) {{
      const {T} factor = lu[r * n + i] / pivot;
      lu[r * n + i] = factor;
      for (int64_t q = i + 1; q < n; q++) lu[r * n + q] -= factor * lu[i * n + q];
    }}
  }}
}}
"""

_LU_SOLVE = """
/* Solve op(a) x = b by a[order] = L * U. False if a is singular. */
{CLONES}static bool lu_solve_{l}(char op, int64_t n, int64_t k, const {T} *lu, const int64_t *order, const {T} *b,
                       {T} *x, {T} *work) {{
  for (int64_t i = 0; i < n; i++) {{
    if (order[i] < 0 || order[i] >= n) return false;
  }}
  for (int64_t i = 0; op == 'n' && i < n; i++) copy(x + i * k, b + order[i] * k, k * (int64_t)sizeof(*b));
  if (op == 'n') {{
    return triangular_{l}(true, op, true, n, k, lu, x) && triangular_{l}(false, op, false, n, k, lu, x);
  }}
  copy(work, b, n * k * (int64_t)sizeof(*b));
  if (!triangular_{l}(false, op, false, n, k, lu, work)) return false;
  triangular_{l}(true, op, true, n, k, lu, work);
  for (int64_t i = 0; i < n; i++) copy(x + order[i] * k, work + i * k, k * (int64_t)sizeof(*b));
  return true;
}}
"""

_BANDED = """
/* Solve a x = b, n rows of k numbers, where row up + i - j of ab has a[i, j]. False if a is singular. In work, row i of
   a begins at column i - low, and has room for what exchanges of rows fill. */
{CLONES}static bool banded_{l}(int64_t low, int64_t up, int64_t n, int64_t k, const {T} *ab, const {T} *b, {T} *x,
                     {T} *work) {{
  const int64_t width = 2 * low + up + 1;
  copy(x, b, n * k * (int64_t)sizeof(*b));
  for (int64_t i = 0; i < n; i++) {{
    for (int64_t c = 0; c < width; c++) {{
      const int64_t j = i - low + c;
      work[i * width + c] = c <= low + up && j >= 0 && j < n ? ab[(up + i - j) * n + j] : 0;
    }}
  }}
  for (int64_t p = 0; p < n; p++) {{
    const int64_t last = size_least(n - 1, p + low), end = size_least(n - 1, p + low + up);
    int64_t best = p;
    for (int64_t i = p + 1; i <= last; i++) {{
      if (size_of_{l}(work[i * width + p - i + low]) > size_of_{l}(work[best * width + p - best + low])) best = i;
    }}
    {T} *const row = work + p * width + low - p, *const other = work + best * width + low - best;
    for (int64_t j = p; best != p && j <= end; j++) {{
      const {T} held = row[j];
      row[j] = other[j], other[j] = held;
    }}
    for (int64_t q = 0; best != p && q < k; q++) {{
      const {T} held = x[p * k + q];
      x[p * k + q] = x[best * k + q], x[best * k + q] = held;
    }}
    if (row[p] == 0) return false;
    for (int64_t i = p + 1; i <= last; i++) {{
      {T} *const below = work + i * width + low - i;
      const {T} factor = below[p] / row[p];
      for (int64_t j = p + 1; j <= end; j++) below[j] -= factor * row[j];
      for (int64_t q = 0; q < k; q++) x[i * k + q] -= factor * x[p * k + q];
    }}
  }}
  for (int64_t p = n - 1; p >= 0; p--) {{
    const {T} *const row = work + p * width + low - p;
    for (int64_t q = 0; q < k; q++) {{
      {T} found = x[p * k + q];
      for (int64_t j = p + 1; j <= size_least(n - 1, p + low + up); j++) found -= row[j] * x[j * k + q];
      x[p * k + q] = found / row[p];
    }}
  }}
  return true;
}}
"""

_QR = """
/* a = q r for m rows of n numbers, by reflections as LAPACK's; q has as many columns as r has rows: wide. work: one row
   more than a. */
{CLONES}static void qr_{l}(int64_t m, int64_t n, int64_t wide, const {T} *a, {T} *q, {T} *r, {T} *work) {{
  const int64_t steps = size_least(m, n);
  {T} *const w = work, *const factors = work + m * n;
  copy(w, a, m * n * (int64_t)sizeof(*a));
  for (int64_t k = 0; k < steps; k++) {{
    const {T} first = w[k * n + k];
    {R} most = 0, sum = 0;
    for (int64_t i = k + 1; i < m; i++) {{
      const {R} size = {size}(w[i * n + k]);
      most = size <= most ? most : size;
    }}
    for (int64_t i = k + 1; most != 0 && i < m; i++) {{
      const {R} part = {size}(w[i * n + k]) / most;
      sum += part * part;
    }}
    factors[k] = 0;
    if (most == 0 && first == {real}(first)) continue;
    const {R} length = hypot{f}({size}(first), most * sqrt{f}(sum)), to = signbit({real}(first)) ? length : -length;
    factors[k] = (to - first) / to;
    w[k * n + k] = to;
    for (int64_t i = k + 1; i < m; i++) w[i * n + k] = w[i * n + k] / (first - to);
    for (int64_t j = k + 1; j < n; j++) {{
      {T} found = w[k * n + j];
      for (int64_t i = k + 1; i < m; i++) found += {conj}(w[i * n + k]) * w[i * n + j];
      found *= {conj}(factors[k]);
      w[k * n + j] -= found;
      for (int64_t i = k + 1; i < m; i++) w[i * n + j] -= w[i * n + k] * found;
    }}
  }}
  for (int64_t i = 0; i < wide; i++) {{
    for (int64_t j = 0; j < n; j++) r[i * n + j] = j < i ? 0 : w[i * n + j];
  }}
  for (int64_t i = 0; i < m; i++) {{
    for (int64_t j = 0; j < wide; j++) q[i * wide + j] = i == j;
  }}
  for (int64_t k = steps - 1; k >= 0; k--) {{
    for (int64_t j = k; j < wide; j++) {{
      {T} found = q[k * wide + j];
      for (int64_t i = k + 1; i < m; i++) found += {conj}(w[i * n + k]) * q[i * wide + j];
      found *= factors[k];
      q[k * wide + j] -= found;
      for (int64_t i = k + 1; i < m; i++) q[i * wide + j] -= w[i * n + k] * found;
    }}
  }}
}}
"""

#: Texts by what is called, and what must stand before.
_TEXTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "sizes": (SIZES + _BYTES, ()), "all_true": (_ALL, ()), "product": (_PRODUCT, ("cblas",)), "scale": (_SCALE, ()),
    "cblas": (_CBLAS, ()), "cholesky": (_CHOLESKY, ()), "triangular": (_TRIANGULAR, ()), "lu_factor": (_LU, ()),
    "lu_solve": (_LU_SOLVE, ("triangular",)), "banded": (_BANDED, ("sizes", "lu_factor")), "qr": (_QR, ()),
    **array_prelude.TEXTS}
_WITHOUT_LETTER = ("sizes", "all_true", "cblas", "half_order", "transform")
_TYPES = {"s": ("float", "float", "f"), "d": ("double", "double", ""), "c": ("float complex", "float", "f"),
          "z": ("double complex", "double", "")}


class Prelude:
    """The functions that one export calls."""

    def __init__(self, name: str):
        self.name = name
        self.found: dict[tuple[str, str], str] = {}
        self.need("sizes")

    def need(self, what: str, letter: str = "") -> str:
        """The C name of a function, for matrices of a letter of BLAS, or for sorts of a dtype."""
        text, before = _TEXTS[what]
        letter = "" if what in _WITHOUT_LETTER else letter
        if (what, letter) not in self.found:
            for other in before:
                self.need(other, letter)
            self.found[what, letter] = self._text(text, letter) if letter or what == "cblas" else text
        return f"{what}_{letter}" if letter else what

    def _text(self, text: str, letter: str) -> str:
        own, pair = self.name.upper(), letter in ("c", "z")
        t, r, f = _TYPES.get(letter, _TYPES["d"])
        wide, few = {"s": 16, "c": 8, "z": 4}.get(letter, 8), {"s": 32, "d": 16}.get(letter, 0)
        words = {
            "NAME": own, "name": self.name, "EXPORT": f"{own}_API ", "CLONES": f"{own}_CLONES ", "l": letter,
            "T": t, "R": r, "conj": f"conj{f}" if pair else "", "real": f"creal{f}" if pair else "", "sqrt": f"sqrt{f}",
            "abs": f"fabs{f}(creal{f}(x)) + fabs{f}(cimag{f}(x))" if pair else f"fabs{f}(x)", "a": "&" if pair else "",
            "few": f"!ta && !tb && m > 1 && m <= {few} && n % {wide} == 0 && n * k <= {few << 14}" if few else "false",
            "WIDE": wide, "f": f, "half": f"0.5{f}",
            "size": f"{'c' * pair}{'abs' if pair else 'fabs'}{f}", "key": TYPES.get(letter, "uint16_t"),
            "before": {"f16": "half_order(a) < half_order(b)"}.get(
                letter, "a < b" if letter[:1] != "f" else "a < b || (b != b && a == a)")}
        words |= {k: f"{'FLT' if f else 'DBL'}_{own}" for k, own in
                  (("MAX", "MAX"), ("MIN", "MIN"), ("EPS", "EPSILON"))}
        return text.format(BLAS=_BY_CBLAS.format(**words), **words)

    def text(self) -> str:
        return "".join(self.found.values())
