"""The error that every isolation mechanism raises when this host does not have it."""

import ctypes
import os


class MechanismUnavailableError(Exception):
    """The host lacks a mechanism; the message is the system's own words."""


def last_error(call: str) -> MechanismUnavailableError:
    """Return the error for a libc or system call that has just failed."""
    number = ctypes.get_errno()
    return MechanismUnavailableError(f"{call}: {os.strerror(number)}")
