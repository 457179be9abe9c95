"""Functions in C of lanes and of matrices: sorts, Fourier transforms, eigenvalues and singular ones. Words as in
``prelude``; ``{key}`` is the type of a number to sort, ``{before}`` an expression that is true where a comes before b.
"""

from __future__ import annotations

#: nan comes last, and half floats are their bits.
_HALF = """static inline int32_t half_order(uint16_t h) {
  const int32_t size = h & 0x7fff;
  return size > 0x7c00 ? INT32_MAX : h & 0x8000 ? -size : size;
}
"""

ORDER = """
static inline bool before_{l}({key} a, {key} b) {{ return {before}; }}
/* The places of n numbers in their order, in which equals stay; more: n places to work with. */
static void order_{l}(int64_t n, const {key} *x, int64_t *at, int64_t *more) {{
  for (int64_t i = 0; i < n; i++) {{
    int64_t j = i;
    for (; j % 16 != 0 && before_{l}(x[i], x[at[j - 1]]); j--) at[j] = at[j - 1];
    at[j] = i;
  }}
  for (int64_t wide = 16; wide < n; wide *= 2) {{
    for (int64_t low = 0; low < n; low += 2 * wide) {{
      const int64_t mid = size_least(low + wide, n), high = size_least(low + 2 * wide, n);
      int64_t p = low, q = mid;
      for (int64_t k = low; k < high; k++) {{
        more[k] = q < high && (p == mid || before_{l}(x[at[q]], x[at[p]])) ? at[q++] : at[p++];
      }}
    }}
    copy(at, more, n * (int64_t)sizeof(*at));
  }}
}}
/* Lanes of n numbers along an axis with outer lanes in front of it and inner ones behind: sorted, or the first of their
   places, of the greatest if down. work: memory for a lane and twice its places. */
static void sort_{l}(int64_t outer, int64_t n, int64_t inner, int64_t first, bool down, const {key} *x, {key} *sorted,
                    int64_t *places, void *work) {{
  int64_t *at = work, *more = at + n;
  {key} *lane = ({key} *)(more + n);
  for (int64_t o = 0; o < outer; o++) {{
    for (int64_t i = 0; i < inner; i++) {{
      for (int64_t k = 0; k < n; k++) lane[k] = x[(o * n + (down ? n - 1 - k : k)) * inner + i];
      order_{l}(n, lane, at, more);
      for (int64_t k = 0; k < first; k++) {{
        const int64_t to = (o * first + k) * inner + i;
        if (sorted) sorted[to] = lane[at[k]];
        if (places) places[to] = down ? n - 1 - at[n - 1 - k] : at[k];
      }}
    }}
  }}
}}
"""

FOURIER = """
/* The transform of n numbers, real and imaginary parts in turns, in x or y; where it is. w: the roots. One pass for
   each factor of n, as Stockham. */
static const double *transform(int64_t n, double *x, double *y, const double *w) {
  int64_t left = n, factor = 2, done = 1;
  while (left > 1) {
    while (left % factor) factor = factor * factor > left ? left : factor + 1;
    const int64_t m = left / factor;
    for (int64_t j = 0; j < m; j++) {
      for (int64_t r = 0; r < factor; r++) {
        const double *turn = w + 2 * ((j * done) * r % n);
        for (int64_t q = 0; q < done; q++) {
          double re = 0, im = 0;
          for (int64_t u = 0; u < factor; u++) {
            const double *a = x + 2 * (q + done * (j + m * u)), *b = w + 2 * (u * r % factor * (n / factor));
            re += a[0] * b[0] - a[1] * b[1];
            im += a[0] * b[1] + a[1] * b[0];
          }
          double *to = y + 2 * (q + done * (factor * j + r));
          to[0] = re * turn[0] - im * turn[1];
          to[1] = re * turn[1] + im * turn[0];
        }
      }
    }
    double *swap = x;
    x = y, y = swap, left = m, done *= factor;
  }
  return x;
}
"""

LANES = """
/* Fourier transforms of lanes of m numbers (kind 'c' complex, 'r' real, 'h' half a spectrum) as n points, of which k
   are kept. False where there are no points. work: 6 * n numbers. */
static bool fourier_{l}(char kind, bool inverse, int64_t outer, int64_t m, int64_t n, int64_t k, int64_t inner,
                       const void *from, void *to, double *work) {{
  if (n < 1 || (kind == 'h' && m != n / 2 + 1)) return false;
  double *w = work + 4 * n;
  for (int64_t p = 0; p < n; p++) {{
    const double angle = 6.283185307179586 * ((double)p / (double)n);
    w[2 * p] = cos(angle), w[2 * p + 1] = inverse ? sin(angle) : -sin(angle);
  }}
  for (int64_t o = 0; o < outer; o++) {{
    for (int64_t i = 0; i < inner; i++) {{
      for (int64_t p = 0; p < n; p++) {{
        const int64_t at = (o * m + (p < m ? p : n - p)) * inner + i;
        const bool own = kind == 'r' || (kind == 'h' && (p == 0 || 2 * p == n));
        work[2 * p] = (double)((const {R} *)from)[kind == 'r' ? at : 2 * at];
        work[2 * p + 1] = own ? 0 : (p < m ? 1 : -1) * (double)((const {R} *)from)[2 * at + 1];
      }}
      const double *found = transform(n, work, work + 2 * n, w);
      for (int64_t p = 0; p < k; p++) {{
        const int64_t at = (o * k + p) * inner + i;
        if (kind == 'h') {{
          (({R} *)to)[at] = ({R})found[2 * p];
        }} else {{
          (({R} *)to)[2 * at] = ({R})found[2 * p];
          (({R} *)to)[2 * at + 1] = ({R})found[2 * p + 1];
        }}
      }}
    }}
  }}
  return true;
}}
"""

SINGULAR = """
/* The n numbers of x less their part along y, whose length is 1; what their length is then. */
static {R} apart_{l}(int64_t n, const {T} *y, {T} *x) {{
  {T} along = 0;
  {R} sum = 0;
  for (int64_t k = 0; y && k < n; k++) along += {conj}(y[k]) * x[k];
  for (int64_t k = 0; k < n; k++) {{
    if (y) x[k] -= along * y[k];
    sum += {real}({conj}(x[k]) * x[k]);
  }}
  return sqrt{f}(sum);
}}
/* Descending singular values d of m rows of n numbers; unless u is NULL the vectors in its columns and in the rows of
   vh, all if full, else as many as there are values: by rotations of columns (Jacobi). False for numbers with a nan or
   an infinity. work: a square of the longer side and one of the other. */
{CLONES}static bool svd_{l}(bool full, int64_t m, int64_t n, const {T} *a, {R} *d, {T} *u, {T} *vh, {T} *work) {{
  const bool tall = m >= n;
  const int64_t high = tall ? m : n, few = tall ? n : m, wide = full ? high : few;
  {T} *const w = work, *const v = work + high * high;
  {R} most = 0;
  for (int64_t i = 0; i < m * n; i++) {{
    const {R} size = {size}(a[i]);
    if (!(size <= {MAX})) return false;
    most = size > most ? size : most;
  }}
  const {R} unit = most == 0 ? 1 : most;
  for (int64_t i = 0; i < few; i++) {{
    for (int64_t k = 0; k < high; k++) w[i * high + k] = (tall ? a[k * n + i] : {conj}(a[i * n + k])) / unit;
    for (int64_t k = 0; k < few; k++) v[i * few + k] = i == k;
  }}
  bool turned = true;
  for (int sweep = 0; turned && sweep < 100; sweep++) {{
    turned = false;
    for (int64_t p = 0; p < few; p++) {{
      for (int64_t q = p + 1; q < few; q++) {{
        {T} *const left = w + p * high, *const right = w + q * high, along = 0;
        for (int64_t k = 0; k < high; k++) along += {conj}(left[k]) * right[k];
        const {R} x = apart_{l}(high, NULL, left), y = apart_{l}(high, NULL, right), size = {size}(along);
        if (size <= {EPS} * sqrt{f}(({R})high) * x * y) continue;
        turned = true;
        const {R} angle = (y - x) * {half} * ((y + x) / size);
        const {R} t = (angle < 0 ? -1 : 1) / (fabs{f}(angle) + hypot{f}(angle, 1)), c = 1 / sqrt{f}(t * t + 1);
        const {T} s = t * c * (along / size);
        for (int64_t k = 0; k < high + few; k++) {{
          {T} *const one = k < high ? left + k : v + p * few + k - high;
          {T} *const two = k < high ? right + k : v + q * few + k - high;
          const {T} first = *one, second = *two;
          *one = c * first - {conj}(s) * second;
          *two = s * first + c * second;
        }}
      }}
    }}
  }}
  for (int64_t i = 0; i < few; i++) d[i] = apart_{l}(high, NULL, w + i * high);
  for (int64_t i = 0; i < few; i++) {{
    int64_t best = i;
    for (int64_t j = i + 1; j < few; j++) best = d[j] > d[best] ? j : best;
    const {R} x = d[i];
    d[i] = d[best], d[best] = x;
    for (int64_t k = 0; best != i && k < high + few; k++) {{
      {T} *const one = k < high ? w + i * high + k : v + i * few + k - high;
      {T} *const two = k < high ? w + best * high + k : v + best * few + k - high;
      const {T} y = *one;
      *one = *two, *two = y;
    }}
  }}
  for (int64_t i = 0; u && i < wide; i++) {{
    {T} *const own = w + i * high;
    {R} size = i < few ? d[i] : 0;
    for (int64_t from = 0; size * size <= {MIN} / {EPS}; from++) {{ /* there is none: what is left of some axis */
      for (int64_t k = 0; k < high; k++) own[k] = k == from;
      for (int64_t j = 0; j < 2 * i; j++) size = apart_{l}(high, w + j % i * high, own);
      size = i == 0 ? 1 : 2 * size * size * high < 1 ? 0 : size;
    }}
    for (int64_t k = 0; k < high; k++) own[k] /= size;
    for (int64_t k = 0; k < high; k++) {{
      if (tall) u[k * wide + i] = own[k];
      else vh[i * n + k] = {conj}(own[k]);
    }}
    for (int64_t k = 0; i < few && k < few; k++) {{
      if (tall) vh[i * n + k] = {conj}(v[i * few + k]);
      else u[k * m + i] = v[i * few + k];
    }}
  }}
  for (int64_t i = 0; i < few; i++) d[i] *= most;
  return true;
}}
"""

#: A matrix that is moved by a bound of its eigenvalues has none below zero: its singular values are these.
HERMITIAN = """
/* Ascending eigenvalues d of the hermitian matrix in a triangle of a, and its eigenvectors in the columns of v, unless
   it is NULL. False for a matrix with a nan or an infinity. work: five of its size. */
static bool eigh_{l}(bool lower, int64_t n, const {T} *a, {R} *d, {T} *v, {T} *work) {{
  {T} *const moved = work + 2 * n * n, *const left = moved + n * n, *const right = left + n * n;
  {R} bound = 0;
  for (int64_t i = 0; i < n; i++) {{
    {R} sum = 0;
    for (int64_t j = 0; j < n; j++) {{
      const {T} x = lower == (i >= j) || i == j ? a[i * n + j] : {conj}(a[j * n + i]);
      moved[i * n + j] = i == j ? {real}(x) : x;
      sum += {size}(x);
    }}
    bound = sum > bound ? sum : bound;
  }}
  for (int64_t i = 0; i < n; i++) moved[i * n + i] += bound;
  if (!svd_{l}(false, n, n, moved, d, left, right, work)) return false;
  for (int64_t i = 0; 2 * i < n; i++) {{
    const {R} most = d[i];
    d[i] = d[n - 1 - i] - bound;
    d[n - 1 - i] = most - bound;
  }}
  for (int64_t i = 0; v && i < n; i++) {{
    for (int64_t j = 0; j < n; j++) v[i * n + j] = {conj}(right[(n - 1 - j) * n + i]);
  }}
  return true;
}}
"""

#: Texts by what is called, and what must stand before.
TEXTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "half_order": (_HALF, ()), "sort": (ORDER, ("half_order",)), "transform": (FOURIER, ()),
    "fourier": (LANES, ("transform",)), "svd": (SINGULAR, ()), "eigh": (HERMITIAN, ("svd",))}
