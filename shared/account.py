"""Who runs an embedded server, and where its files lie so that this account reaches them.

Postgres refuses to run as root. A process of root therefore runs the servers as another account, which has to be able
to search every folder above the binaries and above the data.
"""

import os
import pwd
import shutil
import tempfile
from pathlib import Path

import msgspec

SERVICE_ACCOUNTS = ("postgres", "nobody")
# Where root puts what that account can't reach in its own place, say below a home that is closed to others.
PUBLIC_FOLDER = Path("/var/lib")


class Account(msgspec.Struct, frozen=True):
    """The ids a server runs with; None for those of this process."""

    user: int | None = None
    group: int | None = None


class Unplaceable(Exception):
    """There is no account to run a server, or no place for its files. One line for the operator."""


def account_of(folder: Path) -> Account:
    """Who runs the server whose data are in `folder`.

    An ordinary user does it himself. For root it is the owner of the folder or of the one above, so that root and an
    ordinary user may take turns; where that is root too, the first of SERVICE_ACCOUNTS that the machine has.
    """
    if os.geteuid() != 0:
        return Account()
    owner = (folder if folder.exists() else folder.parent).stat()
    if owner.st_uid != 0:
        return Account(owner.st_uid, owner.st_gid)
    for name in SERVICE_ACCOUNTS:
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(found.pw_uid, found.pw_gid)
    raise Unplaceable(f"root can't run Postgres, and this machine has no account {' or '.join(SERVICE_ACCOUNTS)}")


def own_folder(folder: Path) -> Account:
    """Make `folder`, closed to everybody but the account that runs its server; returns that account.

    Where the account can't reach the place, the files lie under PUBLIC_FOLDER and `folder` is a link to them.
    """
    account = account_of(folder)
    if account.user is not None and not folder.exists() and not _open_to_all(folder.parent):
        folder.unlink(missing_ok=True)  # a link whose target is gone
        folder.symlink_to(tempfile.mkdtemp(prefix="ledgerline-", dir=PUBLIC_FOLDER))
    folder.mkdir(mode=0o700, exist_ok=True)
    give(folder, account)
    return account


def give(path: Path, account: Account) -> None:
    """Make the account the owner of one file or folder."""
    if account.user is not None and account.group is not None:
        os.chown(path, account.user, account.group)


def leave_to_owner(path: Path) -> None:
    """Give a file that root made to the owner of its folder, whom it would lock out of his own folder otherwise."""
    if os.geteuid() == 0:
        owner = path.parent.stat()
        os.chown(path, owner.st_uid, owner.st_gid)


def reachable(top: Path, parts: tuple[str, ...], account: Account, copies: Path) -> Path:
    """A folder that holds the folders `parts` of `top` and that the account can read: `top`, or a copy in `copies`.

    The copy is made once and again when a part has changed.
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
    """Whether everybody may search the folder and all folders above it."""
    found = folder.resolve()
    return all(path.stat().st_mode & 0o001 for path in (found, *found.parents))
