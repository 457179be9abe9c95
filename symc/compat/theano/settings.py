"""``theano.config``: the settings that programs read or write. Few mean anything here; unknown ones are errors."""

from __future__ import annotations

import os
from typing import Any

from symc.errors import InputError, did_you_mean

FLOATS = ("float16", "float32", "float64")
#: Settings with their defaults. All but ``floatX``, ``mode`` and ``on_unused_input`` are kept and change nothing.
DEFAULTS: dict[str, Any] = {
    "floatX": "float64", "mode": "FAST_RUN", "on_unused_input": "ignore", "device": "cpu", "optimizer": "fast_run",
    "linker": "cvm", "openmp": False, "profile": False, "profile_memory": False, "profile_optimizer": False,
    "compute_test_value": "off", "print_test_value": False, "exception_verbosity": "low", "cast_policy": "custom",
    "int_division": "int", "allow_gc": True, "optimizer_including": "", "optimizer_excluding": "", "base_compiledir": "",
    "compiledir": "", "cxx": "", "blas": None, "gcc": None, "lib": None, "scan": None, "warn_float64": "ignore",
    "optimizer_verbose": False, "optdb": None, "NanGuardMode": None, "DebugMode": None, "dnn": None, "experimental": None,
    "reoptimize_unpickled_function": False, "unpickle_function": True, "gpuarray": None, "traceback": None,
    "openmp_elemwise_minsize": 200000, "check_input": True, "nocleanup": False, "assert_no_cpu_op": "ignore",
    "deterministic": "default", "conv": None, "numpy": None, "print_active_device": True, "enable_initial_driver_test":
    True, "force_device": False, "init_gpu_device": "", "pickle_test_value": True, "warn": None, "tensor": None,
}  # fmt: skip


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
