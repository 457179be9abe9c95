"""``sc.fft``: discrete Fourier transforms and frequencies, under the names of ``numpy.fft``."""

from symc import numpy_api as _numpy_api

globals().update(_numpy_api.FFT)
__all__ = sorted(_numpy_api.FFT)
