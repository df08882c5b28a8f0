"""The account of the operating system that runs an embedded server, and a place for files that it can reach.

Postgres refuses to run as root, so a root process runs the servers as another account. That account must be able to
enter every folder above the binaries and above the data.
"""

import os
import pwd
import shutil
import tempfile
from pathlib import Path

import msgspec

SERVICE_ACCOUNTS = ("postgres", "nobody")
# The place for data that the account could not reach in DATA_DIR, for example below a closed home.
PUBLIC_FOLDER = Path("/var/lib")


class OsAccount(msgspec.Struct, frozen=True):
    """The user and group ids of a server; None for those of this process."""

    user: int | None = None
    group: int | None = None


class Unplaceable(Exception):
    """No account can run a server, or its files have no place. One line for the operator."""


def account_of(folder: Path) -> OsAccount:
    """The account that runs the server with its data in `folder`.

    An ordinary user runs it under their own account. For root it is the owner of the folder or of its parent, so that
    root and an ordinary user may take turns; if that is root too, the first of SERVICE_ACCOUNTS on this machine.
    """
    if os.geteuid() != 0:
        return OsAccount()
    owner = (folder if folder.exists() else folder.parent).stat()
    if owner.st_uid != 0:
        return OsAccount(owner.st_uid, owner.st_gid)
    for name in SERVICE_ACCOUNTS:
        try:
            account = pwd.getpwnam(name)
        except KeyError:
            continue
        return OsAccount(account.pw_uid, account.pw_gid)
    raise Unplaceable(f"root can't run Postgres, and this machine has no account {' or '.join(SERVICE_ACCOUNTS)}")


def own_folder(folder: Path) -> OsAccount:
    """Create `folder`, closed to all but the account that runs its server; returns that account.

    If the account can't reach the place, the files are under PUBLIC_FOLDER and `folder` is a link to them.
    """
    account = account_of(folder)
    if account.user is not None and not folder.exists() and not _open_to_all(folder.parent):
        folder.unlink(missing_ok=True)  # a link without its target
        folder.symlink_to(tempfile.mkdtemp(prefix="ledgerline-", dir=PUBLIC_FOLDER))
    folder.mkdir(mode=0o700, exist_ok=True)
    give(folder, account)
    return account


def give(path: Path, account: OsAccount) -> None:
    """Make the account the owner of one file or folder."""
    if account.user is not None and account.group is not None:
        os.chown(path, account.user, account.group)


def give_to_folder_owner(path: Path) -> None:
    """Give a file that root created to the owner of its folder, who could not use it otherwise."""
    if os.geteuid() == 0:
        owner = path.parent.stat()
        os.chown(path, owner.st_uid, owner.st_gid)


def reachable(top: Path, parts: tuple[str, ...], account: OsAccount, copies: Path) -> Path:
    """A folder with the subfolders `parts` of `top` that the account can read: `top` itself, or a copy in `copies`.

    The copy is renewed when a part has changed.
    """
    if account.user is None or all(_open_to_all(top / part) for part in parts):
        return top
    copy = copies / f"binaries-{max((top / part).stat().st_mtime_ns for part in parts)}"
    if not copy.exists():
        for outdated in copies.glob("binaries-*"):
            shutil.rmtree(outdated)
        unfinished = Path(tempfile.mkdtemp(prefix="binaries-", dir=copies))
        for part in parts:
            shutil.copytree(top / part, unfinished / part, symlinks=True)
        for path in (unfinished, *unfinished.rglob("*")):
            give(path, account)
        unfinished.rename(copy)
    return copy


def _open_to_all(folder: Path) -> bool:
    """Whether any account may enter the folder and all folders above it."""
    resolved = folder.resolve()
    return all(path.stat().st_mode & 0o001 for path in (resolved, *resolved.parents))
