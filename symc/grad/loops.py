"""Derivatives of loops and branches, put into the table of ops made of regions.

The rules build graphs on leaves of their own (``ClosureScope``), in which nothing of the user's graph can be reached:
bodies are closed in time that depends on the body alone.
"""

from symc.grad.cond import cond_jvp, cond_vjp
from symc.grad.one_op import REGIONAL
from symc.grad.scan import scan_jvp, scan_vjp
from symc.grad.while_loop import while_jvp, while_vjp

REGIONAL["scan"] = scan_jvp, scan_vjp
REGIONAL["while"] = while_jvp, while_vjp
REGIONAL["cond"] = cond_jvp, cond_vjp
