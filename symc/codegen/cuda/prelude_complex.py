r"""The part of the prelude that is complex numbers: a pair, its arithmetic, and functions made of those of its parts.

Functions are computed in double precision, as on the CPU: ``symc.runtime.library.complex_parts`` gives the parts of
their results, for those that the C library computes there.
"""

from __future__ import annotations

COMPLEX = r"""
template <class T> struct alignas(2 * sizeof(T)) Complex {
  T real, imag;
#ifdef SYMC_EMULATED
  constexpr Complex() : real(0), imag(0) {}  // or g++ guards the first use of shared memory
#else
  Complex() = default;
#endif
  template <class A> SYMC_METHOD Complex(A a) : real(T(a)), imag(T(0)) {}
  template <class A, class B> SYMC_METHOD Complex(A a, B b) : real(T(a)), imag(T(b)) {}
  template <class A> SYMC_METHOD Complex(const Complex<A> &z) : real(T(z.real)), imag(T(z.imag)) {}
  SYMC_METHOD Complex conjugate() const { return Complex(real, -imag); }
};
typedef Complex<f32> c64;
typedef Complex<f64> c128;
template <class A, class B> SYMC_FUNCTION auto complex(A a, B b) {
  if constexpr (is_same<A, f32> && is_same<B, f32>) return c64(a, b);
  else return c128(a, b);
}

template <class T> SYMC_FUNCTION Complex<T> operator+(Complex<T> x, Complex<T> y) {
  return Complex<T>(x.real + y.real, x.imag + y.imag);
}
template <class T> SYMC_FUNCTION Complex<T> operator-(Complex<T> x, Complex<T> y) {
  return Complex<T>(x.real - y.real, x.imag - y.imag);
}
template <class T> SYMC_FUNCTION Complex<T> operator*(Complex<T> x, Complex<T> y) {
  return Complex<T>(x.real * y.real - x.imag * y.imag, x.real * y.imag + x.imag * y.real);
}
template <class T> SYMC_FUNCTION bool operator==(Complex<T> x, Complex<T> y) {
  return x.real == y.real && x.imag == y.imag;
}
template <class T> SYMC_FUNCTION bool operator!=(Complex<T> x, Complex<T> y) { return !(x == y); }
template <class T> SYMC_FUNCTION bool operator==(Complex<T> x, int y) { return x == Complex<T>(y); }
template <class T> SYMC_FUNCTION bool operator!=(Complex<T> x, int y) { return !(x == Complex<T>(y)); }
template <class T> SYMC_FUNCTION bool operator==(Complex<T> x, i64 y) { return x == Complex<T>(y); }
template <class T> SYMC_FUNCTION bool operator!=(Complex<T> x, i64 y) { return !(x == Complex<T>(y)); }
template <class T> SYMC_FUNCTION Complex<T> minus(Complex<T> x) { return Complex<T>(-x.real, -x.imag); }
"""
