"""How facts follow from op to op: one table, filled by the modules here (see ``symc.opt.facts``)."""

from symc.opt.transfer import arithmetic, conditions, factors, functions, movements, reductions, structures

__all__ = ["arithmetic", "conditions", "factors", "functions", "movements", "reductions", "structures"]
