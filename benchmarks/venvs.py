"""The virtual environments that peers run in, and how ``--setup`` makes them.

Peers with clashing requirements get separate environments. The ``main`` one also has symc's own dependencies: symc
itself is imported from the repository, not installed.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
REPOSITORY = PACKAGE.parent
FOLDER = PACKAGE / ".venvs"


@dataclass(frozen=True)
class Venv:
    """Environment and what to install there; ``minimum`` is the oldest Python that the packages accept."""

    packages: tuple[str, ...]
    minimum: tuple[int, int] = (3, 11)


VENVS = {
    "main": Venv(("numpy", "scipy", "numba", "networkx", "numexpr", "jax", "autograd", "casadi")),
    "torch": Venv(("numpy", "scipy", "torch==2.13.0")),
    "pytensor": Venv(("numpy", "scipy", "pytensor>=3.3"), minimum=(3, 12)),
    "more": Venv(("numpy", "scipy", "numba", "networkx", "jax", "onnx", "onnxruntime", "openvino", "drjit",
                  "iree-base-compiler", "iree-base-runtime", "halide")),
}


def interpreter(venv: str) -> Path:
    """The environment's Python, or the running one where that environment was not made."""
    made = _python_in(venv)
    return made if made.exists() else Path(sys.executable)


def make_all(python312: str | None = None) -> bool:
    """Make or update every environment; one that fails is reported and its peers will be skipped."""
    return all([_make(name, venv, python312) for name, venv in VENVS.items()])


def _python_in(venv: str) -> Path:
    return FOLDER / venv / ("Scripts" if sys.platform == "win32" else "bin") / "python"


def _make(name: str, venv: Venv, python312: str | None) -> bool:
    python = _find_python(venv.minimum, python312)
    if python is None:
        print(f"{name}: skipped, no Python {'.'.join(map(str, venv.minimum))} or newer on PATH (see --python312)")
        return False
    print(f"{name}: {python} -> {FOLDER / name}: {' '.join(venv.packages)}", flush=True)
    commands = [[python, "-m", "venv", str(FOLDER / name)],
                [str(_python_in(name)), "-m", "pip", "install", "--quiet", *venv.packages]]  # fmt: skip
    for command in commands:
        if subprocess.run(command).returncode:
            print(f"{name}: failed: {' '.join(command)}")
            return False
    return True


def _find_python(minimum: tuple[int, int], python312: str | None) -> str | None:
    """The first interpreter that starts and is new enough; a name on PATH may be a launcher that does neither."""
    newer = [f"python3.{minor}" for minor in range(minimum[1], minimum[1] + 3)]
    given = [python312] if python312 and minimum > (3, 11) else []
    for name in [*given, sys.executable, *newer]:
        path = shutil.which(name)
        if path and _version(path) >= minimum:
            return path
    return None


def _version(python: str) -> tuple[int, ...]:
    run = subprocess.run([python, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True)
    return tuple(map(int, run.stdout.split())) if run.returncode == 0 else ()
