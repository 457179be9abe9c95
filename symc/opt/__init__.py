"""The optimizer: rules, passes and pipelines, from Function to Function.

The module of a pass is imported when it runs, that of a rule when it is first offered a value (``listed``).
"""

from importlib import import_module as _import
from typing import TYPE_CHECKING, Any

from symc.ir import ops as _ops  # noqa: F401  # isort: skip  (rules are built with op records)
from symc.opt.engine import listed as _listed  # noqa: F401  # isort: skip  (before modules that declare some are imported)
from symc.opt.engine.declare import rewrite, rule
from symc.opt.engine.pass_registry import Pass, all_passes, graph_pass, register_pass, unregister_pass
from symc.opt.engine.passes import Optimized, optimize, run_pass, stabilize_values
from symc.opt.engine.pipelines import DEFAULT, FAST_COMPILE, UNFUSED
from symc.opt.engine.provenance import Firing, Provenance
from symc.opt.engine.rule import Rule, all_rules, lookup_rule, temporary_rules, unregister

if TYPE_CHECKING:
    from symc.opt.why.why_not import why_not

__all__ = [
    "DEFAULT",
    "FAST_COMPILE",
    "UNFUSED",
    "Firing",
    "Optimized",
    "Pass",
    "Provenance",
    "Rule",
    "all_passes",
    "all_rules",
    "cache_from_state",
    "decompose",
    "fold",
    "graph_pass",
    "lookup_rule",
    "optimize",
    "register_pass",
    "rewrite",
    "rule",
    "rules",
    "run_pass",
    "stabilize_values",
    "temporary_rules",
    "unregister",
    "unregister_pass",
    "why_not",
]


def __getattr__(name: str) -> Any:
    if name == "why_not":
        return _import("symc.opt.why.why_not").why_not
    if name in __all__:
        return _import(f"symc.opt.{name}")
    raise AttributeError(f"module 'symc.opt' has no attribute {name!r}")
