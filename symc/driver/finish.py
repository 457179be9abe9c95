"""The road from a closed function on: to a program that is on disk, or through optimizer and planner (``compile``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from symc.driver import warm
from symc.driver.backend import Settings
from symc.driver.backends import backend_of
from symc.driver.built import Built
from symc.driver.compilation import Compilation, Saved
from symc.driver.function import CompiledFunction
from symc.driver.max_bytes import budget_of
from symc.driver.target import target_of
from symc.ir.function import Function, Guard
from symc.ir.record import replace


def compile_built(built: Built, options: Mapping[str, Any], saved: Saved | None = None,
                  later: bool = False) -> CompiledFunction:
    """The rest of the road. ``saved``: what the optimizer made of the function before, which is read if no program of
    the two is on disk. ``later``: the first call compiles what no other process has."""
    unasked = callable(options.get("specialize"))
    if unasked:
        options = {**options, "specialize": options["specialize"](built.function)}
    if options.get("specialize"):
        from symc.driver.specialized import specialized

        return specialized(built, options, compile_built, saved, unasked)
    settings = settings_of(built, options)
    if settings.target.devices:
        from symc.driver.splitting import check_split

        check_split(built.function, settings.target, built.donated)
    compilation = Compilation(built.function, settings)
    seen = warm.look(compilation)
    if saved is not None and not warm.is_of(seen, saved.fingerprint):
        final = saved.read()
        if final is not None:
            built = replace(built, function=with_guards(built.function, final.guards))
        compilation = Compilation(built.function, settings, final)
        seen = warm.look(compilation)
    program = (warm.later if later else warm.program_of)(compilation, seen)
    return CompiledFunction(built, compilation, program, options)


def with_guards(f: Function, guards: Sequence[Guard]) -> Function:
    """The function, which checks these too."""
    return replace(f, guards=(*f.guards, *[g for g in guards if g not in f.guards]))


def settings_of(built: Built, options: Mapping[str, Any]) -> Settings:
    """The settings that the options of ``compile`` are for a function."""
    target, mode = target_of(dict(options)), options["mode"]
    return Settings(backend_of(target, mode), mode, options["pipeline"], built.donated, options["threads"],
                    budget_of(options["max_bytes"], built.function), target)
