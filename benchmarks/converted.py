"""Peers that run what another peer's builder made, converted: JAX's program by IREE, symc's ONNX export by ONNX
Runtime and OpenVINO.

No workload has to say these peers: a case that JAX (or symc) can run is lowered with the case's inputs and handed on.
Inputs and results are held by the peer. A builder that updates state is left out.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks import kit
from benchmarks.workload import Built, Run, Workload

Converter = Callable[[Built, Sequence[Any], Run[Any]], Built]


def iree(built: Built, inputs: Sequence[Any], run: Run[Any]) -> Built:
    """JAX's StableHLO compiled for this processor, run on the calling thread."""
    import iree.compiler
    import iree.runtime

    flags = ["--iree-llvmcpu-target-cpu=host", "--iree-opt-level=O3", "--iree-input-demote-f64-to-f32=false",
             "--iree-opt-data-tiling"]  # fmt: skip
    text = str(_lowered(built).compiler_ir("stablehlo"))
    binary = iree.compiler.compile_str(text, input_type="stablehlo", target_backends=["llvm-cpu"], extra_args=flags)
    config = iree.runtime.Config("local-sync" if run.threads == 1 else "local-task")
    context = iree.runtime.SystemContext(config=config)
    module = iree.runtime.VmModule.copy_buffer(context.instance, binary)
    context.add_vm_module(module)
    arguments = [iree.runtime.asdevicearray(config.device, x) for x in inputs]
    return Built(context.modules[module.name]["main"], arguments)


def openvino(built: Built, inputs: Sequence[Any], run: Run[Any]) -> Built:
    """symc's ONNX export read by OpenVINO, which computes in float32 on a CPU."""
    import openvino

    if run.case.dtype == "float64":
        raise NotImplementedError("openvino: float64 is computed in float32")
    config = {"INFERENCE_NUM_THREADS": run.threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"}
    data, _ = _exported(built, inputs)
    model = openvino.Core().read_model(io.BytesIO(data))
    request = openvino.Core().compile_model(model, "CPU", config).create_infer_request()
    for i, x in enumerate(inputs):
        request.set_input_tensor(i, openvino.Tensor(x, shared_memory=True))

    def call() -> list[Any]:
        request.infer()
        return [tensor.data for tensor in request.output_tensors]

    return Built(call, [])


def onnxruntime(built: Built, inputs: Sequence[Any], run: Run[Any]) -> Built:
    """symc's ONNX export run by ONNX Runtime."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = run.threads
    model, names = _exported(built, inputs)
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    feed = dict(zip(names, inputs))
    return Built(lambda: session.run(None, feed), [])


def _exported(built: Built, inputs: Sequence[Any]) -> tuple[bytes, list[str]]:
    """An ONNX file and the names of its inputs; another exporter may write a graph that runs faster."""
    import onnx

    import symc as sc

    function = built.function
    if not isinstance(function, sc.CompiledFunction):
        if not hasattr(function, "compiled_for"):
            raise NotImplementedError("not one compiled function of symc")
        function, inputs = function.compiled_for(*inputs)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "f.onnx"
        function.to_onnx(path)
        return path.read_bytes(), [i.name for i in onnx.load(path).graph.input]


def _lowered(built: Built) -> Any:
    if not hasattr(built.function, "lower"):
        raise NotImplementedError("not one compiled function of JAX")
    return built.function.lower(*built.arguments)


CONVERTERS: dict[str, tuple[str, Converter]] = {
    "iree": ("jax", iree),
    "openvino": ("symc", openvino),
    "onnxruntime": ("symc", onnxruntime),
}
"""Peers here: the peer whose builder they start from, and what makes theirs of it."""


def build(workload: Workload[Any], run: Run[Any], inputs: Sequence[Any]) -> Built:
    """Function of the peer of ``run``, from another's builder. Raises NotImplementedError if it keeps state."""
    source, convert = CONVERTERS[run.peer]
    native = kit.to_native(source, inputs)
    made = workload.builders[source](replace(run, peer=source), *native)
    built = made if isinstance(made, Built) else Built(made, native)
    if built.stateful:
        raise NotImplementedError(f"{run.peer}: a function with state")
    return convert(built, inputs, run)
