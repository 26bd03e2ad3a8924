"""Exceptions of the native layer, raised by every native module."""


class NativeError(Exception):
    """Base of the native layer's errors; the text is the library's or compiler's own."""


class DriverUnavailableError(NativeError):
    """A driver, a library or a device is not there."""


class DriverError(NativeError):
    """The driver or the operating system refused a call of ours."""


class OutOfMemoryError(DriverError):
    """The driver or the operating system has no memory left for a call of ours."""


class CompileError(NativeError):
    """A source does not compile; the text is the compiler's log."""

    @property
    def log(self) -> str:
        """The compiler's log."""
        return str(self)


class LoadError(NativeError):
    """Object code that the driver does not take."""


class LaunchError(NativeError):
    """A launch that the driver refused, or work that failed on the device."""

    kind: str = "other"
    """What it failed of: "illegal_access", "resources", "invalid" or "other"."""
