"""A branch that loops vectorize around: for operands that a function must know and hardly ever meets.

LLVM widens a loop only if nothing in it branches. A helper of the library that is marked ``rarely`` and called in one
side of a conditional expression, ``far_sine(x) if abs(x) > 1e9 else y``, becomes the call of a function of (condition,
y, x) that has no body while LLVM optimizes, but variants for 2, 4, 8 and 16 elements at once. So the loop is widened.
Then the bodies are linked in, and inlined: one test whether any element is rare, and behind it a loop over the elements
that calls the helper for those that are. A kernel that meets none pays the test.

    the text of a module  =  what is optimized  +  MARK  +  what is linked in afterwards
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symc.runtime.compilers.llvm import llvm, run_passes
from symc.runtime.compilers.llvm_scalars import LLVM
from symc.runtime.compilers.loop_notes import UNLIKELY

MARK = "\n; --- linked in after loops are vectorized\n"
WIDTHS = (2, 4, 8, 16)


class Rarely:
    """The functions with a rare side that a module calls. ``types``: of the condition, the usual result, operands."""

    def __init__(self) -> None:
        self.found: dict[str, tuple[str, tuple[str, ...]]] = {}  # helper's symbol -> (its name here, types)

    def call(self, symbol: str, types: Sequence[str], operands: Sequence[str]) -> str:
        """The call for a helper with this symbol, which gives what it takes second."""
        name, _ = self.found.setdefault(symbol, (f"rarely{len(self.found)}", tuple(LLVM[t] for t in types)))
        passed = ", ".join(f"{LLVM[t]} {x}" for t, x in zip(types, operands, strict=True))
        widened = ",".join(f"_ZGV_LLVM_N{n}{'v' * len(types)}_{name}({name}.{n})" for n in WIDTHS)
        return f'call {LLVM[types[1]]} @{name}({passed}) "vector-function-abi-variant"="{widened}"'

    def declarations(self) -> str:
        """Declarations for the optimized part. A variant that nothing calls yet must be kept for the vectorizer."""
        lines, kept = [], []
        for name, types in self.found.values():
            how = "nounwind willreturn memory(none)"
            lines.append(f"declare {types[1]} @{name}({', '.join(types)}) {how}")
            for n in WIDTHS:
                wide = [f"<{n} x {t}>" for t in types]
                lines.append(f"declare {wide[1]} @{name}.{n}({', '.join(wide)}) {how}")
                kept.append(f"ptr @{name}.{n}")
        used = f"@llvm.compiler.used = appending global [{len(kept)} x ptr] [{', '.join(kept)}]"
        return "\n".join([*lines, f'{used}, section "llvm.metadata"'])

    def bodies(self) -> str:
        """Definitions that are linked in. They are inlined wherever it is called, and never emitted."""
        texts = [f"declare i1 @llvm.vector.reduce.or.v{n}i1(<{n} x i1>)\n" for n in WIDTHS]
        for symbol, (name, types) in self.found.items():
            texts.append(_scalar(symbol, name, types))
            texts.extend(_vector(symbol, name, types, n) for n in WIDTHS)
        return "".join(texts)


def _scalar(symbol: str, name: str, types: Sequence[str]) -> str:
    truth, result, *others = types
    operands = [f"%x{k}" for k in range(len(others))]
    passed = ", ".join(f"{t} {x}" for t, x in zip(others, operands, strict=True))
    return f"""define available_externally {result} @{name}({truth} %c, {result} %y, {passed}) alwaysinline nounwind {{
start:
  br i1 %c, label %rare, label %end, {UNLIKELY}
rare:
  %s = call {result} @{symbol}({passed})
  br label %end
end:
  %found = phi {result} [ %y, %start ], [ %s, %rare ]
  ret {result} %found
}}
"""


def _vector(symbol: str, name: str, types: Sequence[str], n: int) -> str:
    _, result, *others = types
    wide = f"<{n} x {result}>"
    operands = "".join(f", <{n} x {t}> %x{k}" for k, t in enumerate(others))
    taken = "".join(f"  %e{k} = extractelement <{n} x {t}> %x{k}, i32 %i\n" for k, t in enumerate(others))
    passed = ", ".join(f"{t} %e{k}" for k, t in enumerate(others))
    head = f"{wide} @{name}.{n}(<{n} x i1> %c, {wide} %y{operands})"
    return f"""define available_externally {head} alwaysinline nounwind {{
start:
  %any = call i1 @llvm.vector.reduce.or.v{n}i1(<{n} x i1> %c)
  br i1 %any, label %element, label %end, {UNLIKELY}
element:
  %i = phi i32 [ 0, %start ], [ %following, %next ]
  %now = phi {wide} [ %y, %start ], [ %then, %next ]
  %ci = extractelement <{n} x i1> %c, i32 %i
  br i1 %ci, label %rare, label %next
rare:
{taken}  %s = call {result} @{symbol}({passed})
  %with = insertelement {wide} %now, {result} %s, i32 %i
  br label %next
next:
  %then = phi {wide} [ %now, %element ], [ %with, %rare ]
  %following = add i32 %i, 1
  %more = icmp ult i32 %following, {n}
  br i1 %more, label %element, label %end
end:
  %found = phi {wide} [ %y, %start ], [ %then, %next ]
  ret {wide} %found
}}
"""


def link_bodies(module: Any, text: str, context: Any, machine: Any) -> None:
    """Give an optimized module the bodies of its functions with a rare side, where they are called."""
    binding = llvm()
    bodies = binding.parse_assembly(text, context)
    bodies.triple, bodies.data_layout = machine.triple, str(machine.target_data)
    module.link_in(bodies)
    passes = binding.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    options = binding.create_pipeline_tuning_options(speed_level=3)
    run_passes(passes, module, binding.create_pass_builder(machine, options))
