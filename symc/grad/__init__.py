"""Differentiation of value graphs: cotangents backwards (``vjp``), tangents forwards (``jvp``), batching (``vmap``).

What an op's derivative is stands in its record; here is what one does with it. Complex values follow one convention:
a cotangent is the direction of steepest ascent (the conjugate of the textbook dz/dw), and <g, t> is
real(sum(conj(g) * t)).
"""

from symc.grad import regional as _regional  # noqa: F401 - puts derivatives of ops made of regions in place
from symc.grad.batch import vmap
from symc.grad.connect import connected, disconnection
from symc.grad.forward import jvp, slope
from symc.grad.reverse import vjp

__all__ = ["connected", "disconnection", "jvp", "slope", "vjp", "vmap"]
