"""The module that is written beside a library: what stands after the mark, behind the interface of one function.

It needs NumPy and ctypes alone, and knows nothing of symc.
"""

from typing import Any

INTERFACE: Any = {}


def sizes_of(shapes: Any) -> Any:
    """The sizes by their names, from the shapes of arguments and states."""
    return {}


def shapes_of(**sizes: int) -> Any:
    """The shapes of arguments, states and results."""
    return []


# --- the same for every function --------------------------------------------------------------------------------------

import collections  # noqa: E402
import ctypes  # noqa: E402
import hashlib  # noqa: E402
import os  # noqa: E402
import threading  # noqa: E402
import types  # noqa: E402

import numpy as np  # noqa: E402


class LibraryError(ImportError):
    """The library is missing, damaged, not the one of this module, or for another machine."""


class CallError(ValueError):
    """A call was refused, or stopped at an operation that has no value there. States are as they were."""


class Exported:
    """The function of a library. ``states``: its arrays by name, which calls update; write into them to set them."""

    def __init__(self) -> None:
        self.name = INTERFACE["name"]
        self.__doc__ = INTERFACE["usage"]
        self._library = _opened()
        every = [*INTERFACE["inputs"], *INTERFACE["states"]]
        self._given = [(a["name"], _dtype(a["dtype"])) for a in every]
        self._count = len(INTERFACE["inputs"])
        self._plain = all(a["nest"][0] == "leaf" and not a["fixed"] for a in INTERFACE["arguments"])
        self._made = [_dtype(a["dtype"]) for a in INTERFACE["results"]]
        self.states = dict(_initial()) if INTERFACE["states"] else {}
        self._lock = threading.Lock() if INTERFACE["states"] else None
        self._memory = threading.local()
        self._known: Any = {}
        self._call = self._library[self.name]
        numbers = [ctypes.c_int64] * len(INTERFACE["sizes"])
        self._call.argtypes = [ctypes.c_void_p] * (len(every) + len(self._made)) + numbers + [ctypes.c_void_p]
        self._workspace = self._library[self.name + "_workspace"]
        self._workspace.argtypes, self._workspace.restype = numbers, ctypes.c_size_t
        self._message = self._library[self.name + "_message"]
        self._message.restype = ctypes.c_char_p

    def __repr__(self) -> str:
        return f"<{INTERFACE['usage']}, from {INTERFACE['library']}>"

    def __reduce__(self) -> str:
        """A name: other processes import the module."""
        return str(self.name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs or not self._plain or len(args) != self._count:
            args = tuple(leaf for a, item in zip(INTERFACE["arguments"], self._bound(args, kwargs))
                         for leaf in _leaves(a, item, f"{self.name}: {a['name']}"))
        arrays = [self._array(k, item) for k, item in enumerate(args)]
        if self._lock is None:
            return self._run(arrays)
        with self._lock:
            return self._run([*arrays, *self._states()])

    def _states(self) -> Any:
        for name, dtype in self._given[self._count:]:
            a = self.states.get(name)
            if not (isinstance(a, np.ndarray) and a.dtype == dtype and a.flags.carray):
                raise CallError(f"{self.name}: the state {name} must be a contiguous array of {dtype}")
            yield a

    def _run(self, arrays: Any) -> Any:
        shapes = tuple([a.shape for a in arrays])
        known = self._known.get(shapes)
        if known is None:
            if len(self._known) > 255:
                self._known.clear()
            known = self._known[shapes] = self._sizes(shapes)
        sizes, made, need = known
        results = [np.empty(s, d) for s, d in zip(made, self._made)]
        memory = getattr(self._memory, "array", None)
        if memory is None or memory.size < need:
            memory = self._memory.array = np.empty(max(need, 1), np.uint8)
        ordered = [*arrays[: self._count], *results, *arrays[self._count:], memory]
        *places, last = map(_address, ordered)
        code = self._call(*places, *sizes, last)
        if code:
            raise CallError(f"{self.name}: {self._message(code).decode()}")
        return _filled(INTERFACE["outputs"], iter(results))

    def _bound(self, args: Any, kwargs: Any) -> Any:
        names = [a["name"] for a in INTERFACE["arguments"]]
        if len(args) > len(names):
            raise TypeError(f"{self.name} takes {len(names)} arguments ({', '.join(names)}), {len(args)} were given")
        bound = dict(zip(names, args))
        for name, item in kwargs.items():
            if name not in names:
                raise TypeError(f"{self.name} has no argument {name!r}; it has {', '.join(names) or 'none'}")
            if name in bound:
                raise TypeError(f"{self.name}: {name} is given twice, by position and by name")
            bound[name] = item
        for a in INTERFACE["arguments"]:
            if a["name"] not in bound and a["default"] is not None:
                bound[a["name"]] = a["default"]
            if a["name"] not in bound and len(a["fixed"]) == _count(a["nest"]):
                bound[a["name"]] = _AS_IT_WAS
        missing = [n for n in names if n not in bound]
        if missing:
            raise TypeError(f"{self.name}: missing {', '.join(missing)}; it is {INTERFACE['usage']}")
        return [bound[n] for n in names]

    def _array(self, k: int, item: Any) -> Any:
        """The argument as a contiguous array of its dtype, if nothing is lost by that."""
        name, dtype = self._given[k]
        if type(item) is np.ndarray and item.dtype == dtype and item.flags.carray:
            return item
        if isinstance(item, np.ma.MaskedArray):
            raise TypeError(f"{self.name}: {name} has a mask, which would be lost: x.filled(0)")
        try:
            a = np.asarray(item)
        except ValueError as e:
            raise TypeError(f"{self.name}: {name} is no array: {e}") from None
        integers = a.dtype.kind in "iu" and dtype.kind in "iu"
        listed = a.size == 0 and not isinstance(item, np.ndarray)
        if not (integers or listed or np.can_cast(a.dtype, dtype, "same_kind")):
            raise TypeError(f"{self.name}: {name} is {dtype}, but {a.dtype} was given")
        found = np.array(a, dtype, order="C", ndmin=0)
        if integers and not (found == a).all():
            raise TypeError(f"{self.name}: {name} is {dtype}, which cannot hold {a[found != a].ravel()[0]}")
        return found

    def _sizes(self, shapes: Any) -> Any:
        """Sizes in order, shapes of results and bytes of workspace. Raises CallError where shapes do not agree."""
        every = [*INTERFACE["inputs"], *INTERFACE["states"]]
        for a, shape in zip(every, shapes):
            if len(shape) != len(a["shape"]):
                raise CallError(f"{self.name}: {a['name']} has {len(shape)} axes, but {_shown(a)} is needed")
        try:
            sizes = sizes_of(shapes)
            wanted = shapes_of(**sizes)
        except ZeroDivisionError:
            raise CallError(f"{self.name}: no sizes have the shapes {shapes}") from None
        for a, shape, want in zip(every, shapes, wanted):
            if shape != want or min(sizes.values(), default=0) < 0:
                said = ", ".join(f"{n} = {x}" for n, x in sizes.items())
                raise CallError(f"{self.name}: {a['name']} has the shape {shape}, but {_shown(a)} is needed"
                                f"{', with ' if said else ''}{said}")
        numbers = [sizes[n] for n in INTERFACE["sizes"]]
        made = [tuple(max(n, 0) for n in s) for s in wanted[len(every):]]
        return numbers, made, self._workspace(*numbers)


def _dtype(name: str) -> np.dtype:
    """The dtype called so. NumPy knows those of ml_dtypes when the package has been imported."""
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))


def _shown(a: Any) -> str:
    return f"{a['dtype']}[{', '.join(a['shape'])}]"


def _opened() -> Any:
    """The library, if it is the one that was written with this module; looked at before any of it runs."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), INTERFACE["library"])
    try:
        with open(path, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
    except OSError as e:
        raise LibraryError(f"the library of {INTERFACE['name']} is missing: {e}", path=path) from None
    if digest != INTERFACE["sha256"]:
        raise LibraryError(f"{path} is damaged, or not the library that was exported with {__file__}", path=path)
    try:
        library = ctypes.CDLL(path)
        version = library[INTERFACE["name"] + "_version"]
    except (OSError, AttributeError) as e:
        machine = INTERFACE["machine"]
        raise LibraryError(f"{path} was built for {machine} and cannot be loaded: {e}", path=path) from None
    version.restype = ctypes.c_char_p
    if version().decode() != INTERFACE["version"]:
        raise LibraryError(f"{path} is {version().decode()}, not {INTERFACE['version']}", path=path)
    if INTERFACE["products"]:
        _multiply_by_numpy(library)
    return library


def _multiply_by_numpy(library: Any) -> None:
    """Let large products be computed by the BLAS that NumPy brings, where its functions are found; else by loops."""
    try:
        from numpy.linalg import _umath_linalg

        linked = ctypes.CDLL(_umath_linalg.__file__)
    except (ImportError, AttributeError, OSError):
        return
    for name in ("scipy_cblas_{}gemm64_", "cblas_{}gemm64_"):
        try:
            found = [ctypes.cast(linked[name.format(c)], ctypes.c_void_p) for c in "sdcz"]
        except AttributeError:
            continue
        library[INTERFACE["name"] + "_use_blas"](*found)
        return


def _first_field(a: Any, field: Any = ctypes.c_void_p.from_address, head: int = object.__basicsize__) -> Any:
    """The address of an array's numbers, from behind the head of the object: 0.3 us. The array interface takes 2 us."""
    return field(id(a) + head).value


def _interface_says(a: Any) -> Any:
    return a.__array_interface__["data"][0]


_probe = np.arange(9.0)[3:]
_address = _first_field if _first_field(_probe) == _interface_says(_probe) else _interface_says


def _initial() -> Any:
    """The states as they were exported."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), INTERFACE["data"])
    try:
        with np.load(path, allow_pickle=False) as file:
            for a in INTERFACE["states"]:
                array, dtype = file[a["name"]], _dtype(a["dtype"])
                array = array.view(dtype) if array.dtype.kind == "V" else array
                yield a["name"], np.array(array, dtype, order="C")
    except Exception as e:  # whatever NumPy and zipfile raise for what is none of theirs
        raise LibraryError(f"the states of {INTERFACE['name']} cannot be read: {e}", path=path) from None


#: Stands for a static argument that is left out.
_AS_IT_WAS = object()


def _count(nest: Any) -> int:
    return 1 if nest[0] == "leaf" else sum(map(_count, nest[2]))


def _leaves(a: Any, item: Any, where: str) -> Any:
    """The leaves of an argument that are data; others must be what they were when the function was compiled."""
    if item is _AS_IT_WAS:
        return []
    leaves = _flat(a["nest"], item, where)
    for k, (fixed,) in a["fixed"].items():
        given = leaves[k].item() if isinstance(leaves[k], np.generic) else leaves[k]
        if fixed is not ... and repr(given) != repr(fixed):
            raise TypeError(f"{where} has {given!r:.60}, but the library was exported for {fixed!r:.60}")
    return [x for k, x in enumerate(leaves) if k not in a["fixed"]]


def _flat(nest: Any, item: Any, where: str) -> Any:
    """The leaves of an argument."""
    kind, keys, children = nest
    if kind == "leaf":
        return [item]
    if kind == "none" and item is not None:
        raise TypeError(f"{where} must be None, which it was in the function that was exported")
    try:
        if kind == "dict":
            if set(item) != set(keys):
                raise KeyError
            parts = [item[k] for k in keys]
        elif kind in ("tuple", "list"):
            parts = [] if isinstance(item, dict) else list(item)
        else:
            parts = [getattr(item, k) for k in keys]
        if len(parts) != len(children):
            raise KeyError
    except (TypeError, KeyError, AttributeError):
        raise TypeError(f"{where} must be a {kind} of {', '.join(map(repr, keys)) or len(children)}") from None
    return [leaf for child, part in zip(children, parts) for leaf in _flat(child, part, where)]


def _filled(nest: Any, leaves: Any) -> Any:
    """The results in their nest; what was a dataclass has its fields as attributes."""
    kind, keys, children = nest
    if kind == "leaf":
        return next(leaves)
    parts = [_filled(child, leaves) for child in children]
    if kind == "dict":
        return dict(zip(keys, parts))
    if kind == "namedtuple":
        return collections.namedtuple("Result", keys)(*parts)  # type: ignore[misc]
    if kind == "dataclass":
        return types.SimpleNamespace(**dict(zip(keys, parts)))
    return None if kind == "none" else tuple(parts) if kind == "tuple" else parts
