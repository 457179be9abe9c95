"""Imports point left, and ``import symc`` stays light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "symc"
LAYERS = ["errors", "ir", "grad", "opt", "codegen", "runtime", "front"]
HEAVY = ["numba", "llvmlite", "scipy", "networkx", "cupy", "matplotlib", "sklearn", "pytest", "hypothesis"]


def layer(parts: tuple[str, ...]) -> int:
    """The layer of ``symc.<parts>``; whatever has no layer of its own is the front end."""
    name = parts[0] if parts else "front"
    return LAYERS.index(name) if name in LAYERS else LAYERS.index("front")


def module_of(path: Path) -> tuple[str, ...]:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def imports(tree: ast.AST, package: tuple[str, ...]):
    """Every module that is imported anywhere in a file, as full dotted names, with the line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join(
                    ["symc", *package[: len(package) - node.level + 1], *([node.module] if node.module else [])]
                )
            yield base, node.lineno
            for alias in node.names:  # `from symc import x` imports the module x
                if base == "symc":
                    yield f"symc.{alias.name}", node.lineno


def violations(path: Path, source: str) -> list[str]:
    own = module_of(path)
    found = []
    for name, line in imports(ast.parse(source), own if path.name == "__init__.py" else own[:-1]):
        parts = name.split(".")
        if parts[0] == "symc" and len(parts) > 1 and layer(tuple(parts[1:])) > layer(own):
            found.append(f"{path.relative_to(PACKAGE)}:{line} imports {name}")
    return found


def test_imports_point_left():
    found = [v for path in sorted(PACKAGE.rglob("*.py")) for v in violations(path, path.read_text("utf-8"))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "source",
    [
        "from symc.opt import rewrite",
        "import symc.codegen.plan",
        "def f():\n    from symc.tensor import Tensor",
        "from symc import function",
    ],
)
def test_the_check_itself_sees_an_import_to_the_right(source):
    assert len(violations(PACKAGE / "ir" / "example.py", source)) == 1


def test_import_is_light():
    code = f"import sys; import symc; print([m for m in {HEAVY!r} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PACKAGE.parent)
    assert out.stdout.strip() == "[]"
