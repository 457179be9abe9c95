"""The calls of NumPy's own tests, on symbolic values. See README.md."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent
FILES = ("lib/tests/test_function_base.py", "lib/tests/test_nanfunctions.py", "lib/tests/test_shape_base.py",
         "lib/tests/test_index_tricks.py", "lib/tests/test_twodim_base.py", "lib/tests/test_arraysetops.py",
         "lib/tests/test_stride_tricks.py", "lib/tests/test_type_check.py", "lib/tests/test_ufunclike.py",
         "_core/tests/test_numeric.py", "_core/tests/test_item_selection.py")  # fmt: skip
SAMPLE = 10  # one test in this many


def expected() -> set[str]:
    """Known differences: a kind and a function."""
    lines = (HERE / "expected.txt").read_text("utf-8").splitlines()
    return {line.partition(":")[0].strip() for line in lines if line and not line.startswith("#")}


def run(sample: int) -> dict:
    """What was found in a sample of the tests."""
    there = Path(np.__file__).parent
    root = HERE.parents[1]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "found.json")
        env = {**os.environ, "PYTHONPATH": str(root), "SYMC_NUMPY_SAMPLE": str(sample), "SYMC_NUMPY_FOUND": str(out)}
        command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, f"--rootdir={folder}", "-p", "no:symc", "-p",
                   "tests.numpy_suite.plugin", "-p", "no:cacheprovider", "-W", "ignore", "--tb=no",
                   *[str(there / f) for f in FILES]]  # fmt: skip
        done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, check=False)
        assert out.exists(), done.stdout[-2000:] + done.stderr[-2000:]
        return json.loads(out.read_text("utf-8"))


@pytest.mark.skipif(not (Path(np.__file__).parent / FILES[0]).exists(), reason="this NumPy comes without its tests")
def test_the_calls_of_numpys_tests():
    result = run(SAMPLE)
    assert result["counts"].get("equal", 0) > 200, result["counts"]
    new = {k: v for k, v in result["found"].items() if k not in expected()}
    assert not new, "\n".join(f"{k}: {v}" for k, v in sorted(new.items()))


if __name__ == "__main__":
    result = run(1)
    print(result["counts"])
    for key, text in sorted(result["found"].items()):
        print(("  " if key in expected() else "! ") + key, ":", text)
    for key, n in sorted(result["refused"].items(), key=lambda item: -item[1]):
        print(f"refused {n} times, {key}")
