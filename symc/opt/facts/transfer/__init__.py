"""Transfer functions, from facts to facts: a table filled by the modules here (see ``symc.opt.facts.analysis``)."""

from symc.opt.facts.transfer import arithmetic, conditions, factors, functions, movements, reductions, structures

__all__ = ["arithmetic", "conditions", "factors", "functions", "movements", "reductions", "structures"]
