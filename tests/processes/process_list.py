"""The processes of this machine that belong to a folder."""

from contextlib import suppress
from pathlib import Path

import psutil


def processes_of(folder: Path) -> list[psutil.Process]:
    """The supervisors and servers of a DATA_DIR, and their children."""
    places = {str(folder), *(str(path.resolve()) for path in folder.glob("*") if path.is_dir())}
    found: set[psutil.Process] = set()
    for process in psutil.process_iter():
        if any(place in word for word in words_of(process) for place in places):
            with suppress(psutil.NoSuchProcess):
                found.update((process, *process.children(recursive=True)))
    return list(found)


def words_of(process: psutil.Process) -> list[str]:
    """Its command line; empty if it has just ended."""
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []
