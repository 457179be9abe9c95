"""Derivatives and batches of ops made of regions, put in place: their modules are imported when a graph has such an op.

The rules build graphs on leaves of their own (``ClosureScope``), in which nothing of the user's graph can be reached:
bodies are closed in time that depends on the body alone.
"""

from symc.grad.one_op import REGIONAL
from symc.ir.late import late
from symc.ir.ops.call import call
from symc.ir.ops.implicit import root
from symc.ir.ops.remat import checkpoint

HERE = "symc.grad"
for _op, _module in (("scan", "scan"), ("while", "while_loop"), ("cond", "cond"), ("checkpoint", "checkpoint"),
                     ("root", "implicit")):
    REGIONAL[_op] = late(f"{HERE}.{_module}.{_op}_jvp"), late(f"{HERE}.{_module}.{_op}_vjp")
call.facts.jvp, call.facts.vjp = late(f"{HERE}.call.call_jvp"), late(f"{HERE}.call.call_vjp")
call.facts.batch = late(f"{HERE}.batch_regions.call_batch")
root.facts.batch = late(f"{HERE}.batch_regions.root_batch")
checkpoint.facts.batch = late(f"{HERE}.checkpoint.checkpoint_batch")
