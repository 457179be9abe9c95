"""What symc uses of xarray, where that is not installed: an array with labelled axes and coordinates along them."""

import sys
from types import ModuleType

import numpy as np


class DataArray:
    def __init__(self, data, dims=(), coords=None):
        self.values, self.dims = np.asarray(data), tuple(dims)
        self.coords = {}
        for name, c in (coords or {}).items():
            along, numbers = c if isinstance(c, tuple) else (name, c)
            self.coords[name] = Coordinate(numbers, (along,))

    def transpose(self, *dims):
        order = [self.dims.index(d) for d in dims]
        return DataArray(self.values.transpose(order), dims, {n: c.values for n, c in self.coords.items()})

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype)


class Coordinate:
    def __init__(self, values, dims):
        self.values, self.dims, self.size = np.asarray(values), dims, np.size(values)

    def equals(self, other):
        return np.array_equal(self.values, other.values)


def module():
    """xarray, or what stands for it here, under its name."""
    try:
        import xarray
    except ImportError:
        xarray = ModuleType("xarray")
        xarray.DataArray = DataArray
        DataArray.__module__ = "xarray.core"
        sys.modules["xarray"] = xarray
    return xarray
