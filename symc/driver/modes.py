"""The modes in which a function is compiled, what they are called elsewhere, and what may be asked of ``compile``."""

from __future__ import annotations

from typing import Any

from symc.errors import InputError, PipelineError, did_you_mean
from symc.settings import config, flags
from symc.tensors.sizes import whole

#: Every mode. What each runs through is in ``symc.driver.stages``.
MODES = ("default", "fast_compile", "debug", "reference", "nan_guard")

#: Those that run op by op, without kernels.
BY_NUMPY = ("reference", "nan_guard")

#: What other packages call these modes.
OTHER_NAMES = {"fast_run": "default", "debugmode": "debug", "nanguardmode": "nan_guard"}

def chosen(mode: str, pipeline: str | None, backend: str | None, device: Any) -> tuple[str, str | None, str | None]:
    """The mode, pipeline and backend of a function: what the call says, else what ``sc.config`` says. ``FAST_RUN``
    and other names in use elsewhere are understood."""
    flags()  # says what is no flag
    flagged = mode == "default" and config.mode != "default"
    if flagged:
        mode = config.mode
    if pipeline is None and mode in ("default", "debug"):
        pipeline = config.pipeline
    small = mode.lower() if isinstance(mode, str) else ""
    mode = OTHER_NAMES.get(small, small if small in MODES else mode)
    if mode in BY_NUMPY:
        backend = None if flagged else backend
    elif backend is None and device == "cpu":
        backend = config.backend
    return mode, pipeline, backend


def check_options(mode: str, pipeline: str | None) -> None:
    """Raise for a mode that does not exist."""
    if not isinstance(mode, str) or mode not in MODES:
        raise PipelineError(f"unknown mode {mode!r}", help=did_you_mean(str(mode), MODES))
    if pipeline is not None and not isinstance(pipeline, str):
        raise PipelineError(
            f"a pipeline is a string of pass names, not {pipeline!r}", help="such as 'canonicalize,fold,stabilize,fuse'"
        )


def read_threads(given: Any) -> int | None:
    """The number of threads; None for that of the configuration. Raises InputError for what is no such number."""
    number = None if given is None else whole(given) or 0
    if number is not None and number < 1:
        raise InputError(f"threads must be a positive int, not {given!r}")
    return number
