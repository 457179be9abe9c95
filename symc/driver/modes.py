"""The modes in which a function is compiled, what they are called elsewhere, and what may be asked of ``compile``."""

from __future__ import annotations

import os
from typing import Any

from symc.errors import InputError, PipelineError, did_you_mean

#: Every mode. What each runs through is in ``symc.driver.stages``.
MODES = ("default", "fast_compile", "debug", "reference", "nan_guard")

#: Those that run op by op, without kernels.
BY_NUMPY = ("reference", "nan_guard")

#: What other packages call these modes.
OTHER_NAMES = {"fast_run": "default", "debugmode": "debug", "nanguardmode": "nan_guard"}

#: The environment variable that says what the default mode, pipeline and backend are: ``SYMC_FLAGS="mode=debug"``, or
#: ``SYMC_FLAGS="pipeline=canonicalize,fuse"``, or ``SYMC_FLAGS="backend=numba"``; several are separated by semicolons.
FLAGS = "SYMC_FLAGS"


def chosen(mode: str, pipeline: str | None, backend: str | None, device: Any) -> tuple[str, str | None, str | None]:
    """The mode, pipeline and backend of a function: what the call says, else what ``SYMC_FLAGS`` says. ``FAST_RUN``
    and other names in use elsewhere are understood."""
    flags = _flags(os.environ.get(FLAGS, ""))
    flagged = mode == "default" and "mode" in flags
    if flagged:
        mode = flags["mode"]
    if pipeline is None and mode in ("default", "debug"):
        pipeline = flags.get("pipeline")
    small = mode.lower() if isinstance(mode, str) else ""
    mode = OTHER_NAMES.get(small, small if small in MODES else mode)
    if mode in BY_NUMPY:
        backend = None if flagged else backend
    elif backend is None and device == "cpu":
        backend = flags.get("backend")
    return mode, pipeline, backend


def _flags(text: str) -> dict[str, str]:
    found = {}
    for part in filter(None, (p.strip() for p in text.split(";"))):
        name, equals, value = part.partition("=")
        if not equals or name.strip() not in ("mode", "pipeline", "backend"):
            raise PipelineError(f"{FLAGS}: {part!r} is no flag",
                                help="mode=debug; pipeline=canonicalize,fold,fuse; backend=numba")
        found[name.strip()] = value.strip()
    return found


def check_options(mode: str, pipeline: str | None, threads: int | None) -> None:
    """Raise for a mode that does not exist."""
    if not isinstance(mode, str) or mode not in MODES:
        raise PipelineError(f"unknown mode {mode!r}", help=did_you_mean(str(mode), MODES))
    if pipeline is not None and not isinstance(pipeline, str):
        raise PipelineError(
            f"a pipeline is a string of pass names, not {pipeline!r}", help="such as 'canonicalize,fold,stabilize,fuse'"
        )
    if threads is not None and (not isinstance(threads, int) or isinstance(threads, bool) or threads < 1):
        raise InputError(f"threads must be a positive int, not {threads!r}")
