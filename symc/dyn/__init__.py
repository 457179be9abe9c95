"""Define-by-run: ordinary NumPy-like code on arrays, recorded as it runs and differentiated backwards from a result.

    import symc.dyn as dy

    x = dy.Var(np.array([5.0]))
    y = x**2 + x
    y.backward()
    y.data, x.grad                # 30, 11

What is recorded becomes the same IR as everywhere in symc, with the derivatives of ``sc.grad``. Nothing runs until
somebody looks (``.data``, ``float(y)``, ``y.shape``, ``if y > 0``) or goes backwards; a recording like one that was
seen before runs as one compiled function, for arrays of any sizes.
"""

from symc.dyn.recording import eager, no_backprop_mode
from symc.dyn.recording import no_backprop_mode as no_grad
from symc.dyn.var import Var, grad

__all__ = ["Var", "eager", "grad", "no_backprop_mode", "no_grad"]
