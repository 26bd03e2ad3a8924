"""A real PostgreSQL server for tests: Debian's, in a temporary folder, on a UNIX socket only."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from pathlib import Path
from types import TracebackType
from typing import Self

_INSTALLED = "/usr/lib/postgresql"
_START_SECONDS = 280
_USER = "tester"


def absence() -> str:
    """Return why there is no PostgreSQL to test with; empty when there is."""
    try:
        import psycopg  # noqa: F401  the probe
    except ImportError as error:
        return f"PostgreSQL's driver: {error}"
    if _binaries() is None:
        return f"PostgreSQL's server: no {_INSTALLED}/*/bin/postgres (Debian: postgresql)"
    return ""


class PostgresServer:
    """A server with an empty cluster; stopped and removed at the end.

    PostgreSQL refuses to run as root: then another user of the system runs it.

    Args:
        fsync: False for tests that no crash of the machine is part of.
    """

    def __init__(self, *, fsync: bool = False) -> None:
        binaries = _binaries()
        assert binaries is not None, absence()
        self._binaries = binaries
        self._account = _account()
        self._fsync = "on" if fsync else "off"
        self._folder = Path(tempfile.mkdtemp(prefix="kf-pg-"))
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        if self._account is not None:
            os.chown(self._folder, self._account.pw_uid, self._account.pw_gid)
        self._run(
            "initdb", f"--pgdata={self._folder / 'data'}", f"--username={_USER}", "--auth=trust",
            "--no-locale", "--encoding=UTF8", "--no-sync", "--no-instructions",
        )  # fmt: skip
        self.start()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)  # at once: nobody reads it again
            self._process.wait()
        shutil.rmtree(self._folder)

    def start(self) -> None:
        """Start the server on what its folder holds; return once it answers."""
        self._process = self._popen(
            "postgres", "-D", str(self._folder / "data"), "-k", str(self._folder), "-h", "",
            "-c", f"fsync={self._fsync}", "-c", "max_connections=60", "-c", "shared_buffers=32MB",
        )  # fmt: skip
        deadline_s = time.monotonic() + _START_SECONDS
        while self._call("pg_isready", "-q", "-h", str(self._folder)) != 0:
            if self._process.poll() is not None or time.monotonic() > deadline_s:
                raise RuntimeError(f"PostgreSQL does not start: {self._log()}")
            time.sleep(0.02)

    def crash(self) -> None:
        """End the server at once; its next start recovers from its log."""
        assert self._process is not None
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait()

    def url(self, **settings: str) -> str:
        """Return the URL of the database, with run-time settings of its sessions."""
        chosen = "%20".join(f"-c%20{name}%3D{value}" for name, value in settings.items())
        return f"postgresql://{_USER}@/postgres?host={self._folder}&options={chosen}"

    def new_store(self, **settings: str) -> str:
        """Return the URL of an empty store: a schema of its own, made sooner than a database.

        Args:
            settings: Run-time settings of its sessions.
        """
        import psycopg  # optional, see `absence`

        name = f"test_{uuid.uuid4().hex}"
        # No `psql`: a program started by a process that holds gRPC's threads may not come up.
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        return self.url(search_path=name, **settings)

    def _run(self, program: str, *arguments: str) -> None:
        if self._call(program, *arguments) != 0:
            raise RuntimeError(f"{program} failed: {self._log()}")

    def _call(self, program: str, *arguments: str) -> int:
        return self._popen(program, *arguments).wait()

    def _popen(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        account = self._account
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(
                [str(self._binaries / program), *arguments],
                stdout=log,
                stderr=log,
                cwd=self._folder,
                env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
                user=account.pw_uid if account else None,
                group=account.pw_gid if account else None,
                extra_groups=[] if account else None,
            )

    def _log(self) -> str:
        return (self._folder / "log").read_text(errors="replace")[-2000:]


def _binaries() -> Path | None:
    """Return the folder of the newest installed server's programs."""
    found = [p.parent for p in Path(_INSTALLED).glob("*/bin/postgres")]
    return max(found, key=lambda folder: float(folder.parent.name), default=None)


def _account() -> pwd.struct_passwd | None:
    """Return who runs the server instead of root; None when we are not root ourselves."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return pwd.getpwnam("nobody")
