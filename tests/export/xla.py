"""StableHLO text run by JAX: parsed, made static for the arguments at hand, compiled and called."""

import re

import jax
import jax.extend.backend
import numpy as np
from jax._src.interpreters import mlir
from jaxlib import _jax
from jaxlib.mlir import ir

#: The text is tested, not how XLA optimizes it, which takes a third of the time.
PLAIN = _jax.CompileOptions()
PLAIN.executable_build_options.debug_options.xla_backend_optimization_level = 0
PLAIN.executable_build_options.debug_options.xla_llvm_disable_expensive_passes = True


def run(text, *args):
    """The results of the text's function."""
    args = [np.asarray(a) for a in args]
    with jax.enable_x64(True), mlir.make_ir_context():
        module = ir.Module.parse(_called(text, args))
        if "?" in text:
            module = mlir.refine_polymorphic_shapes(module)
        backend = jax.extend.backend.get_backend("cpu")
        devices = _jax.DeviceList(tuple(backend.local_devices()[:1]))
        program = backend.compile_and_load(str(module), devices, PLAIN)
        given = [jax.device_put(a, backend.local_devices()[0]) for a in args]
        return [np.asarray(r[0]) for r in program.execute_sharded(given).disassemble_into_single_device_arrays()]


def _called(text, args):
    """The function under another name, called with arguments whose sizes are numbers."""
    head = re.search(r"func\.func public @main\((.*)\) -> \((.*)\) \{", text)
    if "?" not in text:
        return text
    given = re.findall(r"(tensor<[^>]*>)", head[1])
    static = [f"tensor<{''.join(f'{n}x' for n in a.shape)}{t[7:-1].split('x')[-1]}>"
              for t, a in zip(given, args, strict=True)]
    lines = [f"  func.func public @main({', '.join(f'%a{k}: {t}' for k, t in enumerate(static))}) -> ({head[2]}) {{"]
    lines += [f"    %b{k} = stablehlo.convert %a{k} : ({s}) -> {t}"
              for k, (s, t) in enumerate(zip(static, given, strict=True))]
    names = ", ".join(f"%b{k}" for k in range(len(args)))
    count = len(re.findall(r"tensor<", head[2]))
    lines += [f"    %r:{count} = call @inner({names}) : ({', '.join(given)}) -> ({head[2]})",
              f"    return {', '.join(f'%r#{k}' for k in range(count))} : {head[2]}", "  }"]
    inner = text.replace("func.func public @main", "func.func private @inner").rstrip().removesuffix("}")
    return inner + "\n".join(lines) + "\n}\n"
