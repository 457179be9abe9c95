"""ONNX models as compiled functions: ``sc.from_onnx``. A file is data: it is checked before it is used, and a node
means what the table of ``symc.export.onnx_nodes`` says."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symc.driver.compile import compile
from symc.driver.saved_file import JUNK, open_saved
from symc.errors import InputError, SymcError
from symc.export.onnx_file import KEY, onnx_package
from symc.export.onnx_node import Graph
from symc.export.onnx_nodes import OPERATORS
from symc.ir.size_text import parse_dim
from symc.ir.types import DTYPE_NAMES
from symc.tensors.callsite import at_caller
from symc.tensors.inputs import input as new_input
from symc.tensors.pytree import from_json, unflatten
from symc.tensors.sizes import user_size
from symc.tensors.state import SharedVariable, shared
from symc.tensors.tensor import Tensor

#: The versions of the operators that nodes are read by; older models are converted first.
OLDEST, CONVERTED = 13, 18


def from_onnx(path: Any, inputs: Mapping[str, Any] | None = None, **options: Any) -> Any:
    """The compiled function that an ONNX model is, with its inputs by their names and in their order.

    Sizes keep their names. Results are an array, or a tuple of several; a model that ``f.to_onnx`` wrote gives what
    ``f`` did, and its states are states again, in ``f.shared``. ``options`` are those of ``sc.compile``.
    ``inputs``: tensors for the inputs, by name; then the symbolic results come back instead of a function, to build
    on, differentiate or train. Raises InputError for what is no valid model, whatever is wrong with it, and for an
    operator that symc does not know, with the node; files beside the model are read from its folder alone.
    """
    where = repr(os.fspath(path))
    with at_caller():
        model = _checked(path, where)
        return _built(model, where, inputs, options)


def _checked(path: Any, where: str) -> Any:
    """The model in a file, with the arrays that lie beside it."""
    onnx = onnx_package()
    from google.protobuf.message import DecodeError

    try:
        with open_saved(path) as file:
            model = onnx.load_model_from_string(file.read())
        _read_beside(model, os.path.dirname(os.path.abspath(os.fspath(path))))
        onnx.checker.check_model(model)
        version = max(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
        if version < OLDEST:
            from onnx import version_converter

            model = version_converter.convert_version(model, CONVERTED)
    except OSError:
        raise
    except (DecodeError, onnx.checker.ValidationError, RuntimeError, *JUNK) as e:
        if isinstance(e, SymcError):
            raise
        said = str(e).strip().split("\n")[0]
        raise InputError(f"{where} is not an ONNX model that can be read", help=said or type(e).__name__) from None
    return model


def _read_beside(model: Any, folder: str) -> None:
    """Arrays in other files, which must be in the folder of the model, whole, and no links out of it."""
    onnx = onnx_package()
    for t in _tensors(model.graph):
        if t.data_location != onnx.TensorProto.EXTERNAL:
            continue
        said = {e.key: e.value for e in t.external_data}
        place = os.path.join(folder, said.get("location", ""))
        inside = os.path.realpath(place).startswith(os.path.realpath(folder) + os.sep)
        if os.path.isabs(said.get("location", "/")) or not inside:
            raise InputError(f"the array {t.name!r} is said to lie in {said.get('location')!r}",
                             help="a model's arrays lie in files of its own folder")
        with open_saved(place) as file:
            start = int(said.get("offset", 0))
            file.seek(start if 0 <= start <= os.fstat(file.fileno()).st_size else os.fstat(file.fileno()).st_size)
            count = int(np.prod(t.dims, dtype=object)) * onnx.helper.tensor_dtype_to_np_dtype(t.data_type).itemsize
            data = file.read(max(0, count))
        if len(data) != count or int(said.get("length", count)) != count:
            raise InputError(f"the array {t.name!r} has not {count} bytes in {said['location']!r}")
        t.raw_data = data
        t.data_location = onnx.TensorProto.DEFAULT
        del t.external_data[:]


def _tensors(graph: Any) -> Any:
    """All arrays in a graph and in the bodies inside it."""
    yield from graph.initializer
    for node in graph.node:
        for a in node.attribute:
            yield from [a.t] if a.HasField("t") else [*a.tensors]
            for g in [*([a.g] if a.HasField("g") else []), *a.graphs]:
                yield from _tensors(g)


def _built(model: Any, where: str, given: Mapping[str, Any] | None, options: Mapping[str, Any]) -> Any:
    try:
        said = _own_words(model)
        graph = Graph(where, OPERATORS)
        arrays = {t.name: graph.array(t) for t in model.graph.initializer}
        states: dict[str, SharedVariable] = {n: shared(arrays.pop(n), n) for n in said["states"] if n in arrays}
        leaves = _inputs(model, {**arrays, **states}, given, where)
        results = graph.run(model.graph, {**arrays, **states, **leaves})
        tensors = {o.name: graph.tensor(r) for o, r in zip(model.graph.output, results, strict=True)}
        updates = {states[s]: tensors.pop(n) for s, n in said["updates"].items()}
        outs = [*tensors.values()]
        nest = from_json(said["outputs"]) if said["outputs"] is not None else None
        tree = unflatten(nest, outs) if nest is not None and nest.count == len(outs) else (
            outs[0] if len(outs) == 1 else tuple(outs))
    except JUNK as e:
        if isinstance(e, SymcError):
            raise
        raise InputError(f"{where} is not an ONNX model that can be read", help=f"{type(e).__name__}: {e}") from e
    if given is not None:
        return tree
    name = re.sub(r"\W", "_", model.graph.name, flags=re.ASCII) or "f"
    return compile(tree, [*leaves.values()], updates=updates, **{"name": name, **options})


def _own_words(model: Any) -> dict[str, Any]:
    """Notes of ``f.to_onnx``, none of which is believed that is not so."""
    empty: dict[str, Any] = {"states": [], "updates": {}, "outputs": None}
    noted = [p.value for p in model.metadata_props if p.key == KEY]
    if model.producer_name != "symc" or not noted:
        return empty
    said = json.loads(noted[0])
    results = {o.name for o in model.graph.output}
    ok = isinstance(said, dict) and set(said) == set(empty) and isinstance(said["updates"], dict) and (
        set(said["updates"].values()) <= results and set(said["updates"]) <= set(said["states"])
        <= {t.name for t in model.graph.initializer})
    if not ok:
        raise InputError("what symc noted in the model is not about it")
    return said


def _inputs(model: Any, defaults: Mapping[str, Any], given: Mapping[str, Any] | None, where: str) -> dict[str, Tensor]:
    """A leaf for every input without a default, or what is given for it."""
    onnx = onnx_package()
    leaves = {}
    for i in model.graph.input:
        if i.name in defaults and i.name not in (given or {}):
            continue
        t = i.type.tensor_type
        if not i.type.HasField("tensor_type"):
            raise InputError(f"{where}: the input {i.name!r} is no array")
        if given is not None:
            if i.name not in given:
                raise InputError(f"{where} has an input {i.name!r}, for which nothing is given",
                                 help="inputs: " + ", ".join(i.name for i in model.graph.input))
            leaves[i.name] = given[i.name]
            continue
        dtype = onnx.helper.tensor_dtype_to_np_dtype(t.elem_type)
        if dtype not in DTYPE_NAMES or not t.HasField("shape"):
            raise InputError(f"{where}: the input {i.name!r} has the dtype {dtype}" if dtype not in DTYPE_NAMES else
                             f"{where}: the input {i.name!r} has no number of axes")
        leaves[i.name] = new_input(i.name, dtype, shape=[_size(d) for d in t.shape.dim])
    return leaves


def _size(dim: Any) -> Any:
    """A number, a name, a formula of names; None for anything else, which is a size of its own."""
    if dim.HasField("dim_value"):
        return dim.dim_value
    try:
        return user_size(parse_dim(dim.dim_param))
    except ValueError:
        name = re.sub(r"\W+", "_", dim.dim_param, flags=re.ASCII)
        return name if name.isidentifier() else None


__all__: Sequence[str] = ["from_onnx"]
