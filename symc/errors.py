"""Every error a user can see, and the one formatter that writes them: what, values, where, help."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from numpy.linalg import LinAlgError as _NumpyLinAlgError

from symc.tracebacks import hides, prepare
from symc.tracebacks import of_user as users_frames

#: How much of a type a row shows; a loop with many carries has a long one.
LONGEST_TYPE = 80
#: How many callers of a line are shown.
MOST_CALLERS = 5


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_TYPE else text[: LONGEST_TYPE - 3] + "..."


class SymcError(Exception):
    """Base of all errors of symc.

    ``what`` is one line. ``values`` are rows ``(name, type, location)`` of the values involved; ``where`` are the
    user's lines that asked for it; ``help`` says what to do. Locations are anything with a readable ``str`` that may
    have a ``text`` attribute holding the source line.
    """

    #: The frames of symc are left out of tracebacks (``symc.tracebacks``).
    of_user = True
    _known: frozenset[tuple[str, int]] = frozenset()

    def __init__(self, what: str, *, values: Sequence[tuple[str, Any, Any]] = (), where: Iterable[Any] = (),
                 help: str | None = None):
        self.what, self.values, self.where, self.help = what, list(values), list(where), help
        super().__init__(what)
        prepare()

    def attach(self, values: Sequence[tuple[str, Any, Any]], where: Iterable[Any]) -> None:
        """Add what a lower layer could not know; what is already there stays."""
        self.values = self.values or list(values)
        self.where = self.where or list(where)

    def __str__(self) -> str:
        lines = [self.what]
        if self.values:
            rows = [(f"{n} : {_short(str(t))}" if t is not None else n, str(loc or ""), getattr(loc, "text", ""))
                    for n, t, loc in self.values]
            wide = max(len(r[0]) for r in rows)
            far = max(len(r[1]) for r in rows)
            lines += [f"    {a:{wide}}     {b:{far}}   {c}".rstrip() for a, b, c in rows]
        known = self._lines_of_traceback() if self.where else set()
        for line in dict.fromkeys(line for loc in self.where for line in _rows(loc, known)):
            lines.append(line)
        if self.help:
            lines.append(f"  help: {self.help}")
        return "\n".join(lines)

    def __reduce__(self) -> Any:
        return type(self), self.args, {**self.__dict__, "_known": frozenset(self._lines_of_traceback())}

    def _lines_of_traceback(self) -> set[tuple[str, int]]:
        """The lines that the traceback shows, and those that led to where the error was caught."""
        found = set(self._known)
        trace = self.__traceback__
        frame = trace.tb_frame.f_back if trace is not None else None
        while trace is not None:
            found.add((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
            trace = trace.tb_next
        while frame is not None:
            found.add((frame.f_code.co_filename, frame.f_lineno))
            frame = frame.f_back
        return found

    def _render_traceback_(self) -> list[str]:
        """The lines that IPython and notebooks print."""
        import IPython  # it asks

        trace = users_frames(self.__traceback__) if hides(self) else self.__traceback__
        shell = IPython.get_ipython()
        if shell is None:  # it asks in a shell that is not the one of the process
            import traceback

            return "".join(traceback.format_exception(type(self), self, trace)).splitlines()
        return shell.InteractiveTB.structured_traceback(type(self), self, trace, tb_offset=1)


def _rows(loc: Any, known: set[tuple[str, int]]) -> Iterator[str]:
    """A user's line, and of its callers those that the traceback does not have."""
    yield f"  in {loc}         {getattr(loc, 'text', '')}".rstrip()
    callers = [c for c in getattr(loc, "stack", ())[1:] if (c.file, c.line) not in known]
    for c in callers[:MOST_CALLERS]:
        yield f"    called in {c}         {c.text}".rstrip()


class ShapeError(SymcError, ValueError):
    """Shapes do not fit together."""


class DTypeError(SymcError, TypeError):
    """An operation has no meaning for a dtype."""


class IndexingError(SymcError, IndexError):
    """An index is out of bounds or of a kind that has no meaning."""


class OutOfRangeError(IndexingError, ValueError):
    """An index is out of bounds where NumPy calls that a wrong value (``unravel_index``, ``choose``)."""


class GradientError(SymcError, ValueError):
    """A derivative that does not exist was asked for."""


class InputError(SymcError, TypeError, ValueError):
    """Arguments of a call, or inputs of a function, are missing, unknown, repeated or of the wrong kind."""


class PlanError(SymcError, RuntimeError):
    """A memory plan is impossible or wrong."""


class MemoryBudgetError(PlanError):
    """A function does not fit into ``max_bytes``."""


class ParseError(SymcError, ValueError):
    """IR text does not follow the grammar."""


class PipelineError(SymcError, ValueError):
    """A pipeline, pass, rule or mode name is not known."""


class ExecutionError(SymcError, RuntimeError):
    """An operation failed on the numbers it was given (a singular matrix, for example)."""


class ExportError(SymcError, NotImplementedError):
    """A form that others run cannot express what a function computes."""


class OutOfMemoryError(ExecutionError, MemoryError):
    """A call needs more memory than there is."""


class DeviceError(SymcError, RuntimeError):
    """A device is missing, or cannot do what a function asks of it."""


class LinAlgError(ExecutionError, _NumpyLinAlgError):
    """A matrix has no such factorization, inverse or solution (it is singular, or not positive definite)."""


class CheckError(SymcError, AssertionError):
    """``sc.check_op`` found that an op does not do what it says."""


class AssertError(ExecutionError, AssertionError):
    """A condition of ``sc.debug.assert_`` does not hold."""


class ConvergenceError(ExecutionError):
    """``custom_root`` or ``custom_fixed_point``, or what solves for their derivative, did not arrive at an answer."""


class NonFiniteError(ExecutionError, FloatingPointError):
    """``mode="nan_guard"`` met a nan or an infinity."""


class SymbolicValueError(SymcError, TypeError):
    """A concrete value was needed (``bool(x)``, ``float(x)``, iteration), but the value is symbolic."""


class PackageError(InputError, ModuleNotFoundError):
    """A package that something needs is not installed. ``name`` is the package."""


#: The extra that brings a package; symc itself brings those that are not here.
_EXTRAS = {"cupy": "cuda", "cupy_backends": "cuda", "nvidia": "cuda", "onnx": "onnx",
           "pytest": "test", "hypothesis": "test"}


def missing_package(e: ImportError, what: str | None = None) -> PackageError:
    """The error for an import that failed: which package is missing, and what installs it."""
    package = (e.name or "").split(".")[0]
    extra = _EXTRAS.get(package)
    error = PackageError(what or f"the package {package} is needed here and not installed",
                         help=f"pip install 'symc[{extra}]'" if extra else f"pip install {package}")
    error.name = e.name
    return error


@contextmanager
def named_packages() -> Iterator[None]:
    """Say which package is missing where one is imported that may be."""
    try:
        yield
    except PackageError:
        raise
    except ModuleNotFoundError as e:
        raise missing_package(e) from e


class InternalError(SymcError, RuntimeError):
    """A bug in symc itself. ``text`` holds IR that shows it, ready to be a test."""

    of_user = False

    def __init__(self, what: str, *, text: str = "", **details: Any):
        super().__init__(what, **details)
        self.text = text

    def __str__(self) -> str:
        return super().__str__() + (f"\n  smallest text that shows it:\n{self.text}" if self.text else "")


def of_handler(error: BaseException) -> bool:
    """True if the handler of a signal raised it: somebody else's error, which goes on unchanged. The last argument of
    a handler is the frame that was interrupted, in which it is called."""
    trace = error.__traceback__
    while trace is not None:
        caller = trace.tb_frame.f_back
        given = trace.tb_frame.f_locals.values()
        if caller is not None and any(x is caller or type(x) is tuple and any(y is caller for y in x)
                                      for x in given):
            return True
        trace = trace.tb_next
    return False


def nearest(name: Any, known: Iterable[str], least: float = 0.6) -> str | None:
    """The known name that is most like this one, however either is capitalized; none if that is less than ``least``."""
    import difflib  # nothing was misspelt in most programs

    if not isinstance(name, str):
        return None
    plain: dict[str, list[str]] = {}
    for k in sorted(known):
        plain.setdefault(k.lower().replace("_", ""), []).append(k)
    near = difflib.get_close_matches(name.lower().replace("_", ""), plain, 1, least)
    return difflib.get_close_matches(name, plain[near[0]], 1, 0.0)[0] if near else None


def did_you_mean(name: Any, known: Iterable[str]) -> str:
    """A hint for a misspelt name: the nearest known one, else the list, or as much of it as one reads."""
    known = sorted(known)
    near = nearest(name, known)
    if near is not None:
        return f"did you mean {near!r}?"
    more = f" and {len(known) - 20} more" if len(known) > 24 else ""
    return "known: " + (", ".join(known[:20] if more else known) + more if known else "none")
