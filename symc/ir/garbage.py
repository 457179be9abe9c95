"""No search for cycles of garbage while graphs are made and walked."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collections(lasting: bool = False) -> Iterator[None]:
    """No search for cycles of garbage meanwhile: graphs have none, and are walked whole in each search, which takes a
    third of the time for large ones.

    ``lasting``: most of what is made stays, as modules do. It becomes old at once, for the full searches that Python
    makes now and then, in place of being searched as soon as the next object is made: 6 ms for a compiler's modules.
    """
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            if lasting and not gc.get_freeze_count():  # others froze objects, and want them to stay so
                gc.freeze()
                gc.unfreeze()
            gc.enable()
