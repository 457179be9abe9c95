"""Packages that are not installed: what needs one says which, as an ImportError that is one of symc's."""

import gc
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import sys
blocked = sys.argv[1]
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == blocked:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Block())
import numpy as np, symc as sc
x, m = sc.vector("x"), sc.matrix("m")
reference = sc.compile(sc.exp(x), [x], mode="reference")
a = np.ones(3)
USES = {
    "compile": lambda: sc.compile(sc.exp(x) + sc.gammaln(x), [x])(a),
    "debug": lambda: sc.compile(sc.exp(x), [x], mode="debug")(a),
    "reference": lambda: sc.compile(sc.gammaln(x) + sc.linalg.solve(m, x), [x, m], mode="reference")(a, np.eye(3)),
    "solve": lambda: sc.compile(sc.linalg.solve(m, x), [m, x])(np.eye(3), a),
    "jit": lambda: sc.jit(sc.special.erf)(a),
    "networkx": lambda: reference.to_networkx(), "dot": lambda: reference.to_dot(),
    "accuracy": lambda: reference.accuracy(), "lint": lambda: sc.lint(sc.exp(x)),
    "report": lambda: sc.compile(sc.exp(x), [x], mode="reference", accuracy_report=True),
    "cuda": lambda: sc.compile(sc.exp(x), [x], device="cuda"), "array": lambda: sc.device_array(a),
    "state": lambda: sc.shared(a).to_device("cuda"), "gradcheck": lambda: sc.verify_grad(lambda v: sc.sum(v * v), [a]),
}
found = 0
for name, use in USES.items():
    try:
        use()
    except sc.PackageError as e:
        assert e.name.partition(".")[0] == blocked and "pip install" in e.help, (name, e)
        assert isinstance(e, ModuleNotFoundError) and isinstance(e, sc.SymcError)
        found += 1
    except sc.SymcError as e:
        assert name in ("cuda", "array", "state") and "GPU" in str(e), (name, e)  # there is none here
print("found", found)
"""


@pytest.mark.parametrize("package", ["cupy", "networkx", "mpmath", "scipy", "llvmlite", "numba"])
def test_what_needs_a_package_names_it(package):
    env = {"PYTHONPATH": str(ROOT), "SYMC_CACHE_DIR": "off", "PATH": ""}
    run = subprocess.run([sys.executable, "-c", PROGRAM, package], capture_output=True, text=True, cwd=ROOT, env=env)
    assert run.returncode == 0, run.stderr[-2000:]
    found = int(run.stdout.split()[-1])
    assert found > 0 or package == "numba"  # which only a user's own kernels need


def test_garbage_is_collected_while_tests_run():
    """And the tests themselves are not searched for it, in workers too."""
    assert gc.isenabled() and gc.get_freeze_count() > 10_000
