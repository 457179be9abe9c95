"""Files that appear whole or not at all: written beside their places first, then moved there together."""

from __future__ import annotations

import os
from collections.abc import Mapping

from symc.errors import InputError


def write_files(folder: str, files: Mapping[str, bytes]) -> None:
    """Write files to a folder, which is made if it is not there. Raises InputError for a path that cannot be one."""
    written: list[tuple[str, str]] = []
    try:
        os.makedirs(folder, exist_ok=True)
        for name, data in files.items():
            path = os.path.join(folder, name)
            written.append((f"{path}.{os.getpid()}.tmp", path))
            with open(written[-1][0], "wb") as file:
                file.write(data)
        for temporary, path in written:
            os.replace(temporary, path)
    except (OSError, ValueError) as e:
        raise InputError(f"{folder!r} cannot be written: {e}",
                         help="give a directory that exists or can be made") from e
    finally:
        for temporary, _ in written:
            if os.path.exists(temporary):
                os.unlink(temporary)
