"""Functions that workers are sent, of NumPy and JAX: they travel by the name of this module."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np


def of_numpy(a: np.ndarray) -> Any:
    return np.tanh(a).sum()


@functools.cache
def _jitted() -> Any:
    """JAX's function, which cannot be pickled: each worker makes its own."""
    import jax

    return jax.jit(lambda x: jax.numpy.tanh(x).sum())


def of_jax(a: np.ndarray) -> Any:
    return float(_jitted()(a))


def peak() -> int:
    """The most memory that this process has had, in KiB."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


#: From a pickle to the first result in a new process, import included.
START = """
import time, sys
data = open({path!r}, "rb").read()
begin, used = time.perf_counter(), time.process_time()
import pickle
f = pickle.loads(data)
import numpy as np
f(np.ones(1000))
print(time.perf_counter() - begin, time.process_time() - used)
"""

#: CPU of ``sc.load`` alone, in a process that has imported symc.
LOAD = """
import time
import symc as sc
begin, used = time.perf_counter(), time.process_time()
sc.load({path!r})
print(time.perf_counter() - begin, time.process_time() - used)
"""

#: A pickle of the same function by PyTensor.
PYTENSOR = """
import pickle, pytensor, pytensor.tensor as pt
x = pt.dvector()
f = pytensor.function([x], [pt.tanh(x).sum(), pytensor.grad(pt.tanh(x).sum(), x)])
pickle.dump(f, open({path!r}, "wb"))
"""
