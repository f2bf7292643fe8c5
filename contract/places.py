"""Where Remask keeps things on disk and how it makes those folders: private to the user, never guessed twice.

Knows the operating system's conventions through platformdirs; `REMASK_CACHE_DIR`, `REMASK_CONFIG_DIR` and
`REMASK_RUNTIME_DIR` override them.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import platformdirs

from remask.contract.errors import StorageError

SOCKET_PATH_LIMIT = 100  # bytes; sun_path holds 104 (macOS) or 108 (Linux), the final NUL included


def cache_dir() -> Path:
    """The folder for state that may be lost (KV on disk), created with mode 0700. Raises StorageError."""
    return named_dir("REMASK_CACHE_DIR") or private_dir(Path(platformdirs.user_cache_dir("remask")))


def config_dir() -> Path:
    """The folder for the user's choices, created with mode 0700. Raises StorageError."""
    return named_dir("REMASK_CONFIG_DIR") or private_dir(Path(platformdirs.user_config_dir("remask")))


def runtime_dir() -> Path:
    """The folder for sockets, mode 0700; a temporary one where the wanted one is refused or its path too long."""
    wanted = os.environ.get("REMASK_RUNTIME_DIR") or os.environ.get("XDG_RUNTIME_DIR")
    candidates = [Path(wanted) / "remask"] if wanted else []
    candidates += [_private(tempfile.gettempdir()), _private("/tmp")]  # noqa: S108 - made private, and checked
    refused = StorageError("No folder for temporary files has a path that is short enough for a socket.")
    for folder in candidates:
        if len(os.fsencode(folder)) + 24 > SOCKET_PATH_LIMIT:
            continue
        try:
            return private_dir(folder)
        except StorageError as error:
            refused = error
    raise refused


def named_dir(variable: str) -> Path | None:
    """The folder that an environment variable names, mode 0700; None where it names none. Raises StorageError.

    A folder that is there already and is not the user's alone, as /tmp, stays as it is: `remask` in it is taken.
    """
    named = os.environ.get(variable)
    if not named:
        return None
    folder = Path(named)
    return private_dir(folder / "remask" if _is_for_others(folder) else folder)


def private_dir(folder: Path) -> Path:
    """Create `folder` with mode 0700 and return it; refuse one that belongs to somebody else. Raises StorageError."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.lstat()
        if stat.S_ISLNK(status.st_mode):
            raise StorageError(f"The folder {folder} is a link; Remask keeps its state in folders of its own.")
        if hasattr(os, "getuid") and status.st_uid != os.getuid():
            raise StorageError(
                f"The folder {folder} belongs to another user.", advice="Set REMASK_RUNTIME_DIR to one of yours."
            )
        if stat.S_IMODE(status.st_mode) & 0o077:
            folder.chmod(0o700)
    except OSError as error:
        raise StorageError(f"The folder {folder} cannot be used: {error.strerror or error}.") from error
    return folder


def _is_for_others(folder: Path) -> bool:
    """Whether there is such a folder and somebody else owns it or may look into it. False where systems tell not."""
    try:
        status = folder.stat()
    except OSError:
        return False
    if not hasattr(os, "getuid") or not stat.S_ISDIR(status.st_mode):
        return False
    return status.st_uid != os.getuid() or bool(stat.S_IMODE(status.st_mode) & 0o077)


def _private(temporary: str) -> Path:
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    return Path(temporary) / f"remask-{user}"
