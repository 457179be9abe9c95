"""Settings: ``sc.config``. One table states every setting, its type, its default and its environment variable.

What says most closely counts: ``with sc.config(name=value):`` (of the thread, or task), ``sc.config.name = value``, the
variable ``SYMC_NAME``, ``SYMC_FLAGS="name=value;name=value"``, the default. Variables are read when a setting is asked
for. ``page()`` is the table in the documents.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from symc.errors import InputError, PipelineError, did_you_mean
from symc.tracebacks import Switch

FLAGS = "SYMC_FLAGS"


class Setting(NamedTuple):
    """A setting: ``read`` makes its value of a text or of what was given, and raises ValueError for what is none;
    ``noun`` and ``takes`` say what it is and takes."""

    default: Any
    read: Callable[[Any], Any]
    noun: str
    takes: str
    doc: str
    variable: str = ""
    compiles: bool = True  # other programs come of it
    once: bool = False  # read when it is first needed, and never again


class SettingError(InputError, AttributeError):
    """A setting that does not exist, or a value that it does not take."""


def _switch(x: Any) -> bool:
    words = {"1": True, "true": True, "on": True, "yes": True, "0": False, "false": False, "off": False, "no": False}
    return words[str(x).lower()]


def _one_of(*words: str) -> Callable[[Any], str]:
    return lambda x: words[words.index(x)]


def _threads(x: Any) -> int:
    if isinstance(x, bool) or int(x) != float(x) or int(x) < 1:
        raise ValueError
    return int(x)


def _text(x: Any) -> str:
    if not isinstance(x, str):
        raise ValueError
    return x


#: Every setting by name.
SETTINGS: dict[str, Setting] = {
    "mode": Setting("default", _text, "mode", "the name of a mode",
                    "the mode of functions that are compiled without one"),
    "pipeline": Setting(None, _text, "pipeline", "names of passes",
                        "the pipeline of functions that are compiled without one"),
    "backend": Setting(None, _text, "backend", "llvm, numba, numpy or one that was added",
                       "what makes kernels for the CPU"),
    "threads": Setting(None, _threads, "number of threads", "a number from 1 on",
                       "how many threads a call may use; None: one for each processor", "SYMC_NUM_THREADS"),
    "cache_dir": Setting(None, os.fspath, "folder", "a folder, or off", "where compiled programs are kept",
                         compiles=False),
    "blas": Setting(None, _one_of("numpy", "scipy"), "library", "numpy or scipy", "whose BLAS and LAPACK are called",
                    once=True),
    "cuda": Setting(None, _one_of("emulated", "emulated-fast", "dry"), "kind of device",
                    "emulated, emulated-fast or dry", 'what "cuda" means, if not a GPU'),
    "shadow": Setting(False, _switch, "switch", "1 or 0", "compute every value while it is built, on sample inputs",
                      compiles=False, once=True),
    "full_traceback": Setting(False, _switch, "switch", "1 or 0", "show the frames of symc in tracebacks",
                              compiles=False),
}

_within: ContextVar[Mapping[str, Any]] = ContextVar("symc_config", default={})  # noqa: B039 - never changed
_given: dict[str, Any] = {}


def shadowing() -> bool:
    """The setting ``shadow``: asked for by every public function, so its variable is read once."""
    within = _within.get()
    return within["shadow"] if "shadow" in within else _given.get("shadow", _SHADOW)


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return SETTINGS[name].variable or f"SYMC_{name.upper()}"


def checked(name: str, value: Any, where: str) -> Any:
    """The value that a setting has of what was given. Raises SettingError."""
    s = known(name)
    if value is None and s.default is None:
        return None
    try:
        return s.read(value)
    except (KeyError, ValueError, TypeError, OverflowError):
        raise SettingError(f"{where}: {value!r} is no {s.noun}", help=f"{name} takes {s.takes}: {s.doc}") from None


def known(name: str) -> Setting:
    """The setting of this name. Raises SettingError for one that does not exist."""
    if name not in SETTINGS:
        raise SettingError(f"config: there is no setting {name!r}", help=did_you_mean(name, SETTINGS))
    return SETTINGS[name]


def value_of(name: str) -> Any:
    """The value of a setting, here and now."""
    within = _within.get()
    if name in within:
        return within[name]
    if name in _given:
        return _given[name]
    text = os.environ.get(variable(name), "").strip()
    if text:
        return checked(name, text, variable(name))
    flagged = flags(False) if FLAGS in os.environ else {}
    return checked(name, flagged[name], FLAGS) if name in flagged else SETTINGS[name].default


def flags(strict: bool = True) -> dict[str, str]:
    """Settings in ``SYMC_FLAGS``. Raises PipelineError for what is no flag, if it is ``strict``."""
    found = {}
    for part in filter(None, (p.strip() for p in os.environ.get(FLAGS, "").split(";"))):
        name, equals, value = part.partition("=")
        if (not equals or name.strip() not in SETTINGS) and strict:
            raise PipelineError(f"{FLAGS}: {part!r} is no flag",
                                help="mode=debug; pipeline=canonicalize,fold,fuse; backend=numba")
        found[name.strip()] = value.strip()
    return found


def for_programs() -> list[str]:
    """All that other programs come of, as text: part of their keys."""
    return [f"{n}={value_of(n)!r}" for n, s in SETTINGS.items() if s.compiles]


class Config:
    """``sc.config``: settings as attributes; ``with sc.config(name=value):`` sets some for a while, in this thread."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        known(name)
        return value_of(name)

    def __setattr__(self, name: str, value: Any) -> None:
        _given[name] = checked(name, value, f"config.{name}")

    def __delattr__(self, name: str) -> None:
        known(name)
        _given.pop(name, None)

    @contextmanager
    def _set(self, values: Mapping[str, Any]) -> Iterator[Config]:
        token = _within.set({**_within.get(), **values})
        try:
            yield self
        finally:
            _within.reset(token)

    def __call__(self, **values: Any) -> Any:
        """Settings for the length of a ``with`` block, or of a function that this decorates."""
        return self._set({name: checked(name, value, f"config({name}=)") for name, value in values.items()})

    def __dir__(self) -> list[str]:
        return list(SETTINGS)

    def __repr__(self) -> str:
        return "\n".join(["sc.config", *(f"  {n} = {value_of(n)!r}    # {SETTINGS[n].doc}" for n in SETTINGS)])

    def __reduce__(self) -> str:
        return "config"


config = Config()
_SHADOW: bool = value_of("shadow")


def _full() -> bool:
    try:
        return bool(config.full_traceback)
    except SettingError:
        return False


Switch.full = staticmethod(_full)


def page() -> str:
    """The table of settings, for the documents."""
    rows = [f"| `{n}` | `{variable(n)}` | {s.takes} | `{s.default}` | {s.doc}{'; read once' if s.once else ''} |"
            for n, s in SETTINGS.items()]
    return "\n".join(["| `sc.config.` | variable | takes | default | |", "|---|---|---|---|---|", *rows])

