"""Compiled functions as ONNX models: ``f.to_onnx(path)``."""

from __future__ import annotations

import json
import os
import re
from typing import Any

import numpy as np

from symc.errors import missing_package
from symc.export.files import write_files
from symc.export.onnx_graph import IR_VERSION, OPSET, Graph, live, rename, value_info
from symc.export.onnx_ops import spelled
from symc.export.pure import pure
from symc.runtime.cpu.commit import snapshot
from symc.tensors.pytree import Nest, to_json

#: Key of what a model says of the function that it was.
KEY = "symc"
#: Constants and states beyond so many bytes lie in a file beside the model: a model holds less than two GiB.
IN_MODEL, LARGE = 1 << 30, 1024


def onnx_package() -> Any:
    """The package. Raises PackageError where it is absent."""
    try:
        import onnx
        import onnx.checker
        import onnx.helper
        import onnx.numpy_helper
    except ModuleNotFoundError as e:
        raise missing_package(e) from e
    return onnx


def output_names(nest: Nest, taken: set[str]) -> list[str]:
    """Names of results by how a user reaches them: ``out``, ``out0``, or the keys of a dict."""
    names = []
    for path in nest.paths():
        parts = re.findall(r"\w+", path)
        name = "_".join(parts) or "out"
        name = f"out{name}" if name[0].isdigit() else name
        while name in taken:
            name += "_"
        taken.add(name)
        names.append(name)
    return names


def to_onnx(f: Any, path: Any) -> None:
    """Write a model; ``CompiledFunction.to_onnx`` says what it holds."""
    folder, name = os.path.split(os.fspath(path))
    model = onnx_model(f)
    files = {}
    if sum(len(i.raw_data) for i in model.graph.initializer) > IN_MODEL:
        files[f"{name}.data"] = _moved_out(model, f"{name}.data")
    write_files(folder or os.curdir, {**files, name: model.SerializeToString()})


def _moved_out(model: Any, location: str) -> bytes:
    """The bytes of large arrays, which the model then says are there."""
    from onnx.external_data_helper import set_external_data

    out = bytearray()
    for t in model.graph.initializer:
        if len(t.raw_data) >= LARGE:
            set_external_data(t, location=location, offset=len(out), length=len(t.raw_data))
            out += t.raw_data
            t.ClearField("raw_data")
    return bytes(out)


def onnx_model(f: Any) -> Any:
    """The model, which the checker has passed."""
    onnx = onnx_package()
    function = pure(f, "to_onnx")
    g = Graph(function, spelled)
    taken = set(g.inputs)
    outputs = output_names(f._built.outputs, taken)
    updates = {}
    for k in function.updates:
        updates[g.inputs[k]] = name = g.inputs[k] + "_new"
        while name in taken:
            updates[g.inputs[k]] = name = name + "_"
        taken.add(name)
    names = [*outputs, *updates.values()]
    g._taken.update(names)
    g.known = dict(zip(function.params, g.inputs, strict=True))
    found = g.own([g.value(r) for r in function.body.results])
    rename(g.nodes, dict(zip(found, names, strict=True)))
    states = [k for k, i in enumerate(function.inputs) if i.role == "state"]
    arrays = {g.inputs[k]: a for k, a in zip(states, snapshot(f._cells), strict=True)}
    given = [k for k, i in enumerate(function.inputs) if i.role == "arg" or k in function.updates]
    results, read = function.body.results, set(names)
    nodes = live([*g.first, *g.nodes], read)
    graph = onnx.helper.make_graph(
        nodes, re.sub(r"\W", "_", f.name, flags=re.ASCII) or "f",
        [value_info(g.inputs[k], function.inputs[k].type) for k in given],
        [value_info(n, r.type) for n, r in zip(names, results, strict=True)],
        [onnx.numpy_helper.from_array(np.asarray(a, order="C"), n) for n, a in (arrays | g.initializers).items()
         if n in read or n in updates])
    model = onnx.helper.make_model(graph, producer_name="symc", ir_version=IR_VERSION,
                                   opset_imports=[onnx.helper.make_opsetid("", OPSET)])
    said = {"outputs": to_json(f._built.outputs), "updates": updates, "states": list(arrays)}
    onnx.helper.set_model_props(model, {KEY: json.dumps(said)})
    return model
