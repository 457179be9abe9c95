"""Imports point left, and ``import symc`` stays light."""

import ast
import functools
import subprocess
import sys
from pathlib import Path

import networkx as nx
import pytest

import symc as sc
from symc.runtime.cache import version

PACKAGE = Path(__file__).resolve().parents[2] / "symc"
#: The floors of the house: each uses those before it.
LAYERS = ["errors", "ir", "grad", "opt", "codegen", "runtime", "tensors", "numpy_api", "transforms", "random", "stats",
          "sparse", "segments", "driver", "learning", "dyn", "fold", "export", "dist", "compat", "tools", "testing",
          "front"]
#: The floors of files at the top of the package.
OF_FILES = {"notebook": "errors", "special": "numpy_api", "linalg": "numpy_api", "fft": "numpy_api",
            "debug": "transforms", "parallel": "transforms", "tracebacks": "errors", "settings": "errors",
            **dict.fromkeys(["init", "params", "nn", "optim"], "learning")}
#: Imports upwards: methods of compiled functions are answered by tools and exports, and a mode checks by one; values
#: and functions are printed and pickled by the text; and a value says for type checkers that it has an op.
DOORS = {("driver/function.py", "symc.tools"), ("driver/function.py", "symc.export"),
         ("driver/stages.py", "symc.tools.debugging"), ("ir/value.py", "symc.ir.text"),
         ("ir/function.py", "symc.ir.text"), ("ir/value.py", "symc.ir.op")}
HEAVY = ["dask", "distributed", "zarr", "pyarrow", "mpi4py", "onnx", "onnxruntime",
         "numba", "llvmlite", "scipy", "networkx", "cupy", "matplotlib", "sklearn", "pytest", "hypothesis", "mpmath"]
#: What a program that only builds expressions does not load: each of these takes as long as much of what it does load.
LATER = [
    "symc.opt", "symc.codegen", "symc.runtime", "symc.tools", "symc.testing", "symc.grad", "symc.random", "symc.driver",
    "symc.stats", "symc.sparse", "symc.segments", "symc.init", "symc.params", "symc.nn", "symc.optim",
    "symc.transforms", "symc.export", "symc.dist", "symc.compat", "symc.ir.parse", "symc.ir.text",
    "uuid", "json", "difflib", "fractions", "decimal", "zipfile", "pathlib", "secrets",
]  # fmt: skip


def layer(parts: tuple[str, ...]) -> int:
    """The layer of ``symc.<parts>``; whatever has no layer of its own is the front end."""
    name = OF_FILES.get(parts[0], parts[0]) if parts else "front"
    return LAYERS.index(name) if name in LAYERS else LAYERS.index("front")


def module_of(path: Path) -> tuple[str, ...]:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


@functools.cache
def import_statements(source: str) -> list[ast.Import | ast.ImportFrom]:
    """Those anywhere in a file, also inside functions. Expressions, which have none, are not walked."""
    found, pending = [], [ast.parse(source)]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.append(node)
        for inside in ("body", "orelse", "finalbody", "handlers", "cases"):
            pending += getattr(node, inside, ())
    return found


def imports(source: str, package: tuple[str, ...]):
    """Every module that is imported anywhere in a file, as full dotted names, with the line."""
    for node in import_statements(source):
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


def is_door(path: Path, name: str) -> bool:
    return any(path.as_posix().endswith(file) and name.startswith(door) for file, door in DOORS)


def violations(path: Path, source: str) -> list[str]:
    own = module_of(path)
    found = []
    for name, line in imports(source, own if path.name == "__init__.py" else own[:-1]):
        parts = name.split(".")
        if parts[0] == "symc" and len(parts) > 1 and layer(tuple(parts[1:])) > layer(own):
            if is_door(path, name):
                continue
            found.append(f"{path.relative_to(PACKAGE)}:{line} imports {name}")
    return found


def test_imports_point_left():
    found = [v for path in sorted(PACKAGE.rglob("*.py")) for v in violations(path, path.read_text("utf-8"))]
    assert not found, "\n".join(found)


def graph_of_imports(sources: dict[Path, str]) -> nx.DiGraph:
    """Which module imports which, anywhere in its file, but for doors."""
    modules = {".".join(("symc", *module_of(path))): path for path in sources}
    graph = nx.DiGraph()
    for module, path in modules.items():
        for node in import_statements(sources[path]):
            if isinstance(node, ast.Import):
                named = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                named = [f"{node.module}.{alias.name}" for alias in node.names]
            else:
                continue
            for name in named:
                found = next((n for n in (name, name.rpartition(".")[0]) if n in modules), "symc")
                if found not in ("symc", module) and not is_door(path, found):
                    graph.add_edge(module, found)
    return graph


def circles(graph: nx.DiGraph) -> list[list[str]]:
    return [sorted(c) for c in nx.strongly_connected_components(graph) if len(c) > 1]


def test_no_imports_in_a_circle():
    """Those inside functions and for type checkers count too."""
    sources = {path: path.read_text("utf-8") for path in sorted(PACKAGE.rglob("*.py"))}
    assert circles(graph_of_imports(sources)) == []
    below = PACKAGE / "ir" / "dim.py"
    sources[below] += "\ndef f():\n    from symc.ir.value import Value\n"
    assert any("symc.ir.dim" in c for c in circles(graph_of_imports(sources)))


def test_the_version_of_programs_is_that_of_all_that_makes_them():
    """What optimizes, plans and loads a function imports nothing of other folders."""
    graph = graph_of_imports({path: path.read_text("utf-8") for path in sorted(PACKAGE.rglob("*.py"))})
    used = {name.split(".")[1] for name in nx.descendants(graph, "symc.driver.stages")}
    folders = {name for name in used if (PACKAGE / name).is_dir()}
    assert {"ir", "opt", "codegen", "runtime"} < folders <= {*version.FOLDERS}


@pytest.mark.parametrize(
    "source",
    [
        "from symc.opt import rewrite",
        "import symc.codegen.plan.planner",
        "def f():\n    from symc.tensors.tensor import Tensor",
        "from symc import function",
        "try:\n    pass\nexcept OSError:\n    pass\nelse:\n    with open(''):\n        import symc.tools",
        "for k in ():\n    pass\nelse:\n    match k:\n        case 1:\n            import symc.tools",
        "try:\n    pass\nexcept OSError:\n    import symc.tools\nfinally:\n    pass",
    ],
)
def test_the_check_itself_sees_an_import_to_the_right(source):
    assert len(violations(PACKAGE / "ir" / "example.py", source)) == 1


def loaded_by(code: str, names: list[str]) -> list[str]:
    """Which modules are there after ``code``, besides those that NumPy loads by itself."""
    code = f"import sys, numpy; before = set(sys.modules); {code}; print(*[m for m in {names!r} if m in sys.modules "\
           "and m not in before])"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                          cwd=PACKAGE.parent).stdout.split()


def test_import_is_light():
    assert loaded_by("import symc", [*HEAVY, *LATER]) == []
    assert loaded_by("import symc as sc; x = sc.input('x', 'f64', shape=('n',)); y = sc.sum(sc.exp(x) @ x + 1)",
                     [*HEAVY, *LATER]) == []


def test_what_is_said_to_be_light_can_be_heavy():
    assert loaded_by("import symc as sc; x = sc.input('x', 'f64', shape=()); sc.compile(x, [x], mode='debug')",
                     LATER)[:3] == ["symc.opt", "symc.codegen", "symc.runtime"]


def test_names_that_come_later_are_those_that_type_checkers_see():
    tree = ast.parse((PACKAGE / "__init__.py").read_text("utf-8"))
    (block,) = [n for n in tree.body if isinstance(n, ast.If)]
    seen = {}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        for alias in node.names:
            seen[alias.asname or alias.name] = (node.module, alias.name)
    modules = {n for n, (module, _) in seen.items() if module == "symc"}
    assert modules == set(sc._MODULES)
    assert {n: w for n, w in seen.items() if n not in modules} == sc._WHERE


def test_every_public_name_is_there():
    code = """
import symc, symc.driver.jit, symc.tools.lint, symc.grad.reverse, symc.transforms.checkpoint, types
from symc import *
missing = [n for n in {*symc._WHERE, *symc._MODULES, "sum", "Tensor", "ops"} if n not in globals()]
shadowed = [n for n in symc._WHERE if isinstance(getattr(symc, n), types.ModuleType)]
print(missing, shadowed, set(symc._WHERE) <= set(dir(symc)), symc.map(lambda r: r, symc.asarray([1.0])).shape)
try:
    symc.no_such_name
except AttributeError as e:
    print(e)
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PACKAGE.parent)
    assert out.stdout == "[] [] True (1,)\nmodule 'symc' has no attribute 'no_such_name'\n", out.stderr
