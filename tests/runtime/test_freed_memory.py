"""Results that are dropped together leave their memory to the next ones: no page is taken from the system again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from symc.runtime.cpu import freed_memory

PROGRAM = """
import resource, sys
import numpy as np
import symc as sc
x = sc.input("x", "float64", ("n",))
f = sc.compile(x + 1, [x])
data = np.zeros(131072)
def rounds(n):
    for _ in range(n):
        [f(data) for _ in range(5)]
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
before = rounds(5)
print(rounds(10) - before)
"""


@pytest.mark.skipif(sys.platform != "linux" or not freed_memory.keep(), reason="another allocator")
def test_results_that_are_dropped_together():
    root = str(Path(__file__).resolve().parents[2])
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("MALLOC_", "GLIBC_TUNABLES"))}
    run = subprocess.run([sys.executable, "-c", PROGRAM], env=variables | {"PYTHONPATH": root},
                         capture_output=True, text=True, check=True)  # fmt: skip
    pages = 10 * 5 * 256  # what 50 results of a megabyte have
    assert int(run.stdout) < pages / 10
