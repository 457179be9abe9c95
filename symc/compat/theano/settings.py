"""``theano.config``: the settings that programs read or write. Few mean anything here; unknown ones are errors."""

from __future__ import annotations

import os
from typing import Any

from symc.errors import InputError, did_you_mean

FLOATS = ("float16", "float32", "float64")
#: Settings with their defaults. All but ``floatX``, ``mode`` and ``on_unused_input`` are kept and change nothing.
DEFAULTS: dict[str, Any] = {
    "floatX": "float64", "mode": "FAST_RUN", "on_unused_input": "ignore", "device": "cpu", "optimizer": "fast_run",
    "linker": "cvm", "compute_test_value": "off", "exception_verbosity": "low", "cast_policy": "custom",
    "int_division": "int", "warn_float64": "ignore", "optimizer_including": "", "optimizer_excluding": "",
    **dict.fromkeys("base_compiledir compiledir cxx init_gpu_device".split(), ""),
    **dict.fromkeys("openmp profile profile_memory profile_optimizer print_test_value optimizer_verbose nocleanup "
                    "reoptimize_unpickled_function".split(), False),
    **dict.fromkeys("allow_gc check_input unpickle_function print_active_device pickle_test_value".split(), True),
    **dict.fromkeys("blas gcc lib scan optdb NanGuardMode DebugMode dnn experimental gpuarray traceback conv numpy "
                    "warn tensor".split()),
}


class _Group:
    """Settings below one name (``config.warn.subtensor_merge_bug``): kept, and without effect."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return False


class Config:
    """The settings of the shim, first those of ``THEANO_FLAGS``."""

    def __init__(self, flags: str = "") -> None:
        for name, value in DEFAULTS.items():
            self.__dict__[name] = _Group() if value is None else value
        for flag in filter(None, (f.strip() for f in flags.split(","))):
            name, _, given = flag.partition("=")
            group, _, rest = name.strip().partition(".")
            where, last = (getattr(self, group, None), rest) if rest else (self, group)
            if isinstance(where, _Group) or where is self and last in DEFAULTS:
                setattr(where, last, given.strip())

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in DEFAULTS:
            raise AttributeError(f"theano.config has no {name!r}: {did_you_mean(name, list(DEFAULTS))}")
        if name == "floatX" and value not in FLOATS:
            raise InputError(f"theano.config.floatX is one of {', '.join(FLOATS)}, not {value!r}")
        self.__dict__[name] = value

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"theano.config has no {name!r}: {did_you_mean(name, list(DEFAULTS))}")


config = Config(os.environ.get("THEANO_FLAGS", ""))


def float_dtype(dtype: Any = None) -> str:
    """A dtype by its name, ``floatX`` for None."""
    return config.floatX if dtype is None or dtype == "floatX" else str(getattr(dtype, "name", dtype))
