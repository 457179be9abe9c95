"""Differentiation of value graphs: cotangents backwards (``vjp``), tangents forwards (``jvp``), batching (``vmap``).

What an op's derivative is stands in its record; here is what one does with it. Complex values follow one convention:
a cotangent is the direction of steepest ascent (the conjugate of the textbook dz/dw), and <g, t> is
real(sum(conj(g) * t)).
"""

from symc.grad import batch_regions as _batch_regions  # noqa: F401 - puts batching rules in place
from symc.grad import call as _call  # noqa: F401 - puts its derivative in place
from symc.grad import checkpoint as _checkpoint  # noqa: F401 - puts its derivative in place
from symc.grad import implicit as _implicit  # noqa: F401
from symc.grad import loops as _loops  # noqa: F401
from symc.grad.batch import vmap
from symc.grad.connect import connected, disconnection
from symc.grad.forward import jvp, slope
from symc.grad.reverse import vjp

__all__ = ["connected", "disconnection", "jvp", "slope", "vjp", "vmap"]
