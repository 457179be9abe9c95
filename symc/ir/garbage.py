"""No search for cycles of garbage while graphs are made and walked."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from operator import call


@contextmanager
def no_collections(lasting: bool = False) -> Iterator[None]:
    """No search for cycles of garbage meanwhile: graphs have none, and are walked whole in each search, which takes a
    third of the time for large ones.

    ``lasting``: the modules that are imported stay. They become old at once, for the full searches that Python makes
    now and then, in place of being searched as soon as the next object is made: 6 ms for a compiler's modules.
    """
    before, modules = gc.isenabled(), len(sys.modules)
    try:  # from here on, as the handler of a signal may raise after any call
        if before:  # else whoever began before may end before, and nobody would enable them again
            gc.disable()
        yield
    finally:
        try:
            # Others may have frozen objects, and want them to stay so; counting these walks all of them.
            if before and lasting and len(sys.modules) > modules and not gc.get_freeze_count():
                any(map(call, (gc.freeze, gc.unfreeze)))  # both or none
        finally:
            if before:
                gc.enable()
