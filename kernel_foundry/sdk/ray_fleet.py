"""Evaluators behind Ray Serve's gRPC ingress: deployed, looked at, and taken down.

Ray is imported here alone, and by the application itself (`evaluator_svc.ray_app`).
"""

import importlib
import logging
import os
import secrets
import socket
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from kernel_foundry.errors import (
    InvalidArgumentError,
    PackageMissingError,
    ServiceUnavailableError,
)
from kernel_foundry.paths import ray_token_path
from kernel_foundry.plain_yaml import PlainYamlError, read_yaml
from kernel_foundry.rpc.limits import MESSAGE_LIMIT_BYTES
from kernel_foundry.text_file import read_text_file
from kernel_foundry.whole_file import replace_file, writing

APPLICATION: Final = "evaluator_svc.ray_app"
"""Module with `application`, which makes one; `add_methods` and `listen_on_loopback` are for the
ingress."""
INGRESS_PORT: Final = 9000
_LONGEST_FILE: Final = 1 << 16
_LOOK_S: Final = 1.0
_PROBE_S: Final = 60.0
"""For all hosts of a cluster, which start a process for it each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationState:
    """The state of one application."""

    name: str
    state: str
    """As Serve calls it: RUNNING, DEPLOYING, UNHEALTHY, ..."""
    replicas: Mapping[str, int]
    """How many there are, by Serve's word for their state."""
    message: str = ""


class RayFleet:
    """A cluster of Ray with our applications; to be closed.

    Args:
        address: Of a cluster that runs, such as "head:6379" or "auto"; "" starts one on this
            machine, which ends with this process.
        is_open: Whether an ingress that starts here listens at all addresses of its hosts, without
            TLS, and not for its host alone.

    Raises:
        PackageMissingError: Ray is not installed.
        InvalidArgumentError: the file of the cluster's token cannot be written.
        ServiceUnavailableError: the cluster does not answer or did not start.
    """

    def __init__(self, address: str = "", *, is_open: bool = False) -> None:
        self._is_own = not address
        self._is_open = is_open
        if self._is_own:
            # Read by the ingress, which is a process of the cluster.
            os.environ.setdefault("RAY_SERVE_GRPC_MAX_MESSAGE_SIZE", str(MESSAGE_LIMIT_BYTES))
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            _use_token(_token_file())
            here: dict[str, Any] = {"_node_ip_address": "127.0.0.1", "include_dashboard": False}
        else:
            if address == "auto" and ray_token_path().exists():
                _use_token(ray_token_path())
            here = {"address": address}
        if not is_open:
            hook = f"{APPLICATION}.listen_on_loopback"
            here["runtime_env"] = {"worker_process_setup_hook": hook}
        self._ray, self._serve = _ray()
        try:
            self._ray.init(**here, namespace="serve", logging_level="ERROR", log_to_driver=False)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise ServiceUnavailableError(
                f"no cluster of Ray at {address or 'this machine'}: {error}", target=address
            ) from error

    def up(self, applications: Mapping[str, Mapping[str, Any]], port: int) -> int:
        """Deploy applications behind the ingress; return its port once they answer.

        Args:
            applications: Arguments of each (`evaluator_svc.ray_app.DeviceClass`), by its name.
            port: The ingress's on every node. A cluster that has an ingress already keeps its port
                and where it listens.

        Raises:
            InvalidArgumentError: an application's arguments are wrong, the port is taken, or the
                ingress listens at all addresses though it is not to be open.
            ServiceUnavailableError: an application did not start; the message says why. Or a host
                of the cluster does not tell who listens there.
        """
        module = importlib.import_module(APPLICATION)
        made = {name: module.application(given) for name, given in applications.items()}
        if self._ingress() is None and self._is_anywhere("127.0.0.1", port):
            # Ray would share it, or fail without a word.
            raise InvalidArgumentError(f"port {port} is taken: choose another one", field="port")
        from ray.serve.config import HTTPOptions, ProxyLocation, gRPCOptions

        self._serve.start(
            proxy_location=ProxyLocation.EveryNode,
            http_options=HTTPOptions(host="127.0.0.1", port=0),  # nobody asks for it
            grpc_options=gRPCOptions(
                port=port, grpc_servicer_functions=[f"{APPLICATION}.add_methods"]
            ),
        )
        port = self._ingress() or port
        # An address of its host that only a listener at all addresses answers.
        if not self._is_open and self._is_anywhere("127.0.0.2", port):
            raise InvalidArgumentError(
                f"the ingress of this cluster listens at all addresses, port {port}, without TLS:"
                " end it by `kfoundry fleet down`, or say --insecure inside a network that you"
                " trust",
                field="port",
            )
        for name, application in made.items():
            try:
                # The ingress knows only what has a route of HTTP as well.
                self._serve.run(application, name=name, route_prefix=f"/{name}")
            except RuntimeError as error:
                states = [state for state in self.status() if state.name == name]
                why = next((state.message for state in states if state.message), str(error))
                raise ServiceUnavailableError(f"{name} did not start: {why}") from error
        return port

    def _ingress(self) -> int | None:
        """The port of the ingress, which another command may have started; None: there is none."""
        from ray.serve.context import _get_global_client

        client = _get_global_client(raise_if_no_controller_running=False)
        if client is None:
            return None
        return int(self._ray.get(client._controller.get_grpc_config.remote()).port)

    def _is_anywhere(self, host: str, port: int) -> bool:
        """Whether something listens at an address of a host of the cluster, as seen from there."""
        if self._is_own:
            return _listens(host, port)
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        task = self._ray.remote(num_cpus=0)(_listens)
        asked = [
            task.options(
                scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            ).remote(host, port)
            for node in self._ray.nodes()
            if node["Alive"]
        ]
        try:
            return any(self._ray.get(asked, timeout=_PROBE_S))
        except (self._ray.exceptions.RayError, TimeoutError) as error:
            raise ServiceUnavailableError(
                f"the hosts of the cluster do not report the listener at port {port}: {error}"
            ) from error

    def status(self) -> tuple[ApplicationState, ...]:
        """Return where the applications stand; none once another one has shut Serve down."""
        try:
            found = self._serve.status().applications
        except self._ray.exceptions.ActorDiedError:  # the controller that we know
            return ()
        return tuple(
            ApplicationState(
                name=name,
                state=app.status.value,
                replicas={
                    state: count
                    for deployment in app.deployments.values()
                    for state, count in deployment.replica_states.items()
                },
                message=app.message,
            )
            for name, app in sorted(found.items())
        )

    def wait(self, names: Collection[str] = ()) -> None:
        """Return once none of these applications is left; without names once none at all is."""
        while any(not names or state.name in names for state in self.status()):
            time.sleep(_LOOK_S)

    def down(self, names: Collection[str] = ()) -> None:
        """Take applications down, each once its calls in flight have ended or time is over.

        Args:
            names: Which; none for all, and the ingress with them.

        Raises:
            InvalidArgumentError: there is no such application.
        """
        there = [state.name for state in self.status()]
        if absent := [name for name in names if name not in there]:
            known = ", ".join(there) or "none"
            raise InvalidArgumentError(
                f"no application {absent[0]!r}; there is {known}", field="application"
            )
        for name in names or there:
            self._serve.delete(name, _blocking=False)  # or it gives up after a minute
        self.wait(names)  # `shutdown` would end the ingress at once, and calls with it
        if not names:
            self._serve.shutdown()

    def close(self) -> None:
        """Leave the cluster; one that this made ends."""
        self._ray.shutdown()


def read_applications(path: Path) -> dict[str, Mapping[str, Any]]:
    """Return the applications of a file: YAML, `applications` with each one's arguments by name.

    Raises:
        InvalidArgumentError: it cannot be read or has another form.
    """
    try:
        document = read_yaml(read_text_file(path, _LONGEST_FILE))
    except PlainYamlError as error:
        raise InvalidArgumentError(f"{path}: {error}", field="file") from error
    named = document.get("applications") if isinstance(document, dict) else None
    if (
        not isinstance(named, dict)
        or not named
        or not all(isinstance(given, dict) for given in named.values())
    ):
        raise InvalidArgumentError(
            f"{path}: expected `applications` with the arguments of each by its name", field="file"
        )
    from kernel_foundry.rpc.applications import is_application

    for name in map(str, named):
        if not is_application(name):
            raise InvalidArgumentError(
                f"{path}: no application may be called {name!r}: expected letters, digits, - and _",
                field="file",
            )
    return {str(name): given for name, given in named.items()}


def _token_file() -> Path:
    """The file of the token of this user's own clusters, made at first use."""
    path = ray_token_path()
    if not path.exists():
        with writing(path, field="token"):
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, secrets.token_hex(32), mode=0o600)
    return path


def _use_token(path: Path) -> None:
    """Have Ray ask for a token, unless its user has set otherwise.

    Its processes listen at all addresses, and everyone who can reach them can run code here.
    """
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    if "RAY_AUTH_TOKEN" not in os.environ:
        os.environ.setdefault("RAY_AUTH_TOKEN_PATH", str(path))


def _ray() -> tuple[ModuleType, ModuleType]:
    try:
        import ray
        from ray import serve
    except ImportError as error:
        raise PackageMissingError(
            "a fleet behind Ray Serve needs the extra: pip install 'kernel-foundry[ray]'",
            package="ray",
        ) from error
    logging.getLogger("ray.serve").setLevel(logging.WARNING)
    return ray, serve


def _listens(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((host, port)) == 0
