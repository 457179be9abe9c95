"""Where the functions of ``symc.ir.ops.special`` are smooth: ranges of their operands."""

from __future__ import annotations

import numpy as np

from symc.ir.op import Elementwise, Op, Unknown
from symc.ir.ops.special import SEVERAL, TABLE, WHOLE

#: By name of the operand, then by function and operand, where that differs.
BY_NAME = {
    "p": (0.05, 0.95), "y": (0.05, 0.95), "m": (0.1, 0.9), "a": (0.4, 4), "b": (0.4, 4), "c": (0.4, 4), "v": (0.3, 3),
    "n": (0, 4), "k": (0.2, 3), "df": (0.5, 9), "dfn": (0.5, 9), "dfd": (0.5, 9), "nc": (0.2, 4), "x": (0.1, 3),
    "z": (0.1, 0.9), "u": (-2, 2), "phi": (-5, 5), "alpha": (0.3, 2), "beta": (0.3, 2), "h": (-2, 2), "t": (-3, 3),
    "lmbda": (-1.2, 1.2), "q": (0.3, 4), "d": (0.05, 0.95), "sigma": (0.5, 2), "gamma": (0.5, 2), "std": (0.5, 2),
    "mn": (-1, 1), "l": (0.5, 1), "lmb": (0.2, 2), "nu": (0.2, 2), "f": (0.1, 3),
}
OWN = {
    "betainc x": (0.05, 0.95), "betaincc x": (0.05, 0.95), "btdtria x": (0.05, 0.95), "btdtrib x": (0.05, 0.95),
    "erfcinv y": (0.1, 1.9), "ndtri_exp y": (-9, -0.1), "kolmogorov y": (0.2, 2), "ellipk m": (-3, 0.9),
    "ellipe m": (-3, 0.9), "elliprd y": (0.4, 4), "zeta x": (1.2, 5), "poch m": (0.3, 3), "gdtr a": (0.4, 2),
    "bdtr n": (3, 9), "bdtrc n": (3, 9), "bdtri n": (3, 9), "nbdtr n": (2, 9), "nbdtrc n": (2, 9), "nbdtri n": (2, 9),
    "pdtr m": (0.3, 4), "pdtrc m": (0.3, 4), "pdtri k": (1, 4), "bdtri k": (0, 2.9), "smirnov n": (2, 9),
    "smirnovi n": (2, 9), "expn n": (0, 4), "kn n": (1, 4), "yn n": (1, 4), "spence z": (0.1, 3),
    "inv_boxcox lmbda": (-0.9, 1.2), "inv_boxcox1p lmbda": (-0.9, 1.2), "wrightomega z": (-3, 3), "lpmv x": (-0.9, 0.9),
    "lpmv m": (0, 2), "chndtrinc x": (6, 12), "chndtrinc df": (0.5, 3), "chndtrinc p": (0.05, 0.5),
    "eval_legendre x": (-0.9, 0.9), "eval_jacobi x": (-0.9, 0.9), "eval_gegenbauer x": (-0.9, 0.9),
    "eval_chebyt x": (-0.9, 0.9), "eval_chebyu x": (-0.9, 0.9), "hyp2f1 c": (1, 5), "elliprc y": (0.4, 4),
    "tklmbda x": (-0.7, 0.7), "erfi x": (-2, 2), "dawsn x": (-30, 30), "log_ndtr x": (-20, 3), "exprel x": (-3, 3),
    "cosm1 x": (-3, 3), "gamma x": (-3, 3), "rgamma x": (-3, 3), "stdtr t": (-3, 3), "airy x": (-3, 3), "j0 x": (-9, 9),
    "j1 x": (-9, 9), "i1 x": (-3, 3), "i1e x": (-3, 3), "i0e x": (-3, 3), "ber x": (-3, 3), "sici x": (-3, 3),
    "fresnel x": (-3, 3), "kolmogi p": (0.05, 0.95), "tandg x": (-50, 50), "cotdg x": (20, 70),
}


def smooth(op: Op, n: int, rng: np.random.Generator) -> list[np.ndarray] | None:
    """Operands at which a function of the tables is smooth; None for another op."""
    name = op.facts.routine.name if op.facts.routine else op.name
    names = TABLE.get(name) or SEVERAL.get(name, (0, None, ""))[1]
    if names is None:
        return None
    found = [rng.uniform(*OWN.get(f"{name} {x}", BY_NAME[x]), n) for x in names]
    if op.name.endswith(WHOLE) or name == "lpmv" or (op.facts.routine and op.facts.routine.takes[0] == "l"):
        held = isinstance(op.derivative, Elementwise) and isinstance(op.derivative.partials[0], Unknown)
        found[0] = np.floor(found[0]) + (not held) * 0.5  # what is not held must not be where fractions end
    return found
