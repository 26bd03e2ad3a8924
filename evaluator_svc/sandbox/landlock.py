"""Landlock: the process may read some files, write to one folder, and nothing else.

Source: https://docs.kernel.org/userspace-api/landlock.html. Which files is in `host_paths.py` and
`confinement.py`.
"""

import ctypes
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from evaluator_svc.sandbox.limits import forbid_new_privileges
from evaluator_svc.sandbox.mechanism import MechanismUnavailableError, last_error

_CREATE_RULESET: Final = 444
_ADD_RULE: Final = 445
_RESTRICT_SELF: Final = 446
_VERSION_FLAG: Final = 1
_RULE_PATH_BENEATH: Final = 1

_READ_FILE: Final = 1 << 2
_READ_DIR: Final = 1 << 3
_WRITE_FILE: Final = 1 << 1
_TRUNCATE: Final = 1 << 14
_IOCTL_DEVICE: Final = 1 << 15
_MAKE_FOLDER: Final = 1 << 7
_MAKE_FILE: Final = 1 << 8
_SCRATCH_RIGHTS: Final = _READ_FILE | _READ_DIR | _WRITE_FILE | _TRUNCATE | _MAKE_FILE
"""Plain files may be made, and nothing is removed or renamed, so that a look at the folder sees
all that fills the disk."""
_EXECUTE: Final = 1
_REMOVE_FOLDER: Final = 1 << 4
_REMOVE_FILE: Final = 1 << 5
_MAKE_LINK: Final = 1 << 12
_MOVE: Final = 1 << 13
_WORKING_RIGHTS: Final = _MAKE_FOLDER | _REMOVE_FOLDER | _REMOVE_FILE | _MAKE_LINK | _MOVE
"""What compilers do in the folder that they work in."""
_FILE_RIGHTS: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEVICE

_RIGHTS_OF_VERSION: Final = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""Count of file-system rights each ABI version knows; later ones as 5."""
_TCP_RIGHTS: Final = 0b11
"""Bind and connect."""
_TCP_SINCE: Final = 4
_SCOPES: Final = 0b11
"""Abstract UNIX sockets and signals."""
_SCOPES_SINCE: Final = 6


_SINCE: Final = {
    3: "truncation",
    _TCP_SINCE: "TCP",
    5: "device ioctl",
    _SCOPES_SINCE: "signals and abstract sockets",
}
"""What later versions restrict as well; seccomp refuses all of it but ioctl without Landlock."""


class _RulesetAttributes(ctypes.Structure):
    _fields_ = (
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def restrict(
    *,
    readable: tuple[str, ...],
    writable: tuple[str, ...],
    devices: tuple[str, ...],
    makes_folders: bool,
    starts_programs: bool,
) -> None:
    """Restrict the calling thread and all it starts; paths that do not exist are left out.

    With `starts_programs` what may be read may be executed, and files in writable folders may be
    removed and renamed.

    Whatever the paths, it may no longer trace processes that are not restricted alike, nor look
    into their memory, files and environment below `/proc`.

    Raises:
        MechanismUnavailableError: Linux has no Landlock here, or it is switched off.
    """
    libc, known = _probe()
    handled = (1 << _RIGHTS_OF_VERSION.get(known, 16)) - 1
    attributes = _RulesetAttributes(
        handled_access_fs=handled,
        handled_access_net=_TCP_RIGHTS if known >= _TCP_SINCE else 0,
        scoped=_SCOPES if known >= _SCOPES_SINCE else 0,
    )
    with _enforced(libc, known, attributes) as ruleset:
        executed = _EXECUTE if starts_programs else 0
        for path in readable:
            _allow(libc, ruleset, path, (_READ_FILE | _READ_DIR | executed) & handled)
        for path in writable:
            made = _MAKE_FOLDER if makes_folders else 0
            made |= _WORKING_RIGHTS if starts_programs else 0
            _allow(libc, ruleset, path, (_SCRATCH_RIGHTS | made) & handled)
        for path in devices:
            _allow(libc, ruleset, path, (_FILE_RIGHTS | _READ_DIR) & handled & ~1)


def version() -> int:
    """Return the version of Landlock's interface; 0 where there is none."""
    try:
        return _probe()[1]
    except MechanismUnavailableError:
        return 0


def shortcomings(known: int) -> tuple[str, ...]:
    """Return what a version of Landlock's interface, from 1 on, cannot restrict yet."""
    return tuple(
        f"landlock of {subject}: the kernel's interface is {known}, it came with {since}"
        for since, subject in _SINCE.items()
        if known < since
    )


def hide(nodes: Collection[str]) -> None:
    """Forbid the calling thread and all it starts to open some entries of `/dev`.

    Raises:
        MechanismUnavailableError: Linux has no Landlock here, or it is switched off.
    """
    libc, known = _probe()
    handled = _READ_FILE | _WRITE_FILE
    with _enforced(libc, known, _RulesetAttributes(handled_access_fs=handled)) as ruleset:
        # Landlock knows what is allowed only: everything else, then.
        for path in (*Path("/").iterdir(), *Path("/dev").iterdir()):
            is_left_out = path == Path("/dev") or path.is_symlink() or str(path) in nodes
            if not is_left_out:
                _allow(libc, ruleset, str(path), handled)


def _probe() -> tuple[ctypes.CDLL, int]:
    """The C library and the version of Landlock's interface."""
    libc = ctypes.CDLL(None, use_errno=True)
    known = libc.syscall(_CREATE_RULESET, None, 0, _VERSION_FLAG)
    if known < 1:
        raise last_error("landlock_create_ruleset")
    return libc, known


@contextmanager
def _enforced(libc: ctypes.CDLL, known: int, attributes: _RulesetAttributes) -> Iterator[int]:
    """Let rules be added to a new ruleset, then put it in force."""
    # Older kernels refuse a structure that is longer than theirs.
    size = 24 if known >= _SCOPES_SINCE else 16 if known >= _TCP_SINCE else 8
    ruleset = libc.syscall(_CREATE_RULESET, ctypes.byref(attributes), size, 0)
    if ruleset < 0:
        raise last_error("landlock_create_ruleset")
    try:
        yield ruleset
        forbid_new_privileges()
        if libc.syscall(_RESTRICT_SELF, ruleset, 0) != 0:
            raise last_error("landlock_restrict_self")
    finally:
        os.close(ruleset)


def _allow(libc: ctypes.CDLL, ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not Path(path).is_dir():
            rights &= _FILE_RIGHTS
        rule = _PathBeneath(allowed_access=rights, parent_fd=descriptor)
        if libc.syscall(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, ctypes.byref(rule), 0) != 0:
            raise MechanismUnavailableError(f"{last_error('landlock_add_rule')} for {path}")
    finally:
        os.close(descriptor)
