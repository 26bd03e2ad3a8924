"""The evaluator as an application of Ray Serve, behind its gRPC ingress; docs/ray.md.

A replica is the supervisor of one device: its judges, builders and runners are processes of its
own, as below `kfoundry serve evaluator`, and it loads no driver itself. Ray is needed to deploy an
application, not to import this.
"""

import dataclasses
import os
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, Self

from evaluator_svc.evaluator import LocalEvaluator
from evaluator_svc.service import SERVICE, evaluator_service
from evaluator_svc.settings import EvaluatorSettings
from kernel_foundry.errors import InvalidArgumentError, PackageMissingError
from kernel_foundry.rpc.carried import CallContext, CarriedService, add_raw_methods
from kernel_foundry.rpc.guards import Guards
from kernel_foundry.rpc.security import ServerSecurity

MOST_ONGOING: Final = 256
"""Calls that a replica has at a time, those that wait for its device included; its own queue is
shorter and refuses more as busy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceClass:
    """One application: devices of a class, a replica for each."""

    device: str
    """Kind of device that replicas look for: "cuda", "sycl" or "null"."""
    min_replicas: int = 1
    max_replicas: int = 1
    accelerator_type: str = ""
    """As Ray calls the model, such as "H200"; "" for any."""
    cpus: float = 1.0
    """Cores that a replica asks Ray for."""
    queue: int = 4
    """Calls for each replica, above which there are more replicas."""
    drain_seconds: float = 120.0
    """For calls in flight when a replica is to end."""
    unsafe_no_sandbox: bool = False
    tokens: str = ""
    """File of tokens, on each host; "" lets in whoever reaches the ingress."""
    usage: str = ""
    audit_log: str = ""

    def __post_init__(self) -> None:
        """Refuse what is no class.

        Raises:
            InvalidArgumentError: a number that is out of its range.
        """
        if not 0 <= self.min_replicas <= self.max_replicas or self.max_replicas < 1:
            raise InvalidArgumentError(
                f"{self.min_replicas} to {self.max_replicas} replicas: expected 1 or more, and "
                "min_replicas <= max_replicas",
                field="replicas",
            )

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any]) -> Self:
        """Return the class of an application's arguments, as a configuration of Serve has them.

        Raises:
            InvalidArgumentError: an argument is unknown, of another type, or `device` is missing.
        """
        known = {field.name: field.type for field in fields(cls)}
        for name, value in arguments.items():
            kind = known.get(name)
            if kind is None:
                raise InvalidArgumentError(
                    f"args: {name!r} is unknown; there are {', '.join(known)}", field=name
                )
            is_right = type(value) is kind or (kind is float and type(value) is int)
            if not is_right:
                raise InvalidArgumentError(
                    f"args: {name}={value!r}, expected {getattr(kind, '__name__', kind)}",
                    field=name,
                )
        if "device" not in arguments:
            raise InvalidArgumentError("args: device is missing", field="device")
        return cls(**arguments)


class Replica:
    """The evaluator of one device, with the methods of its service as Ray Serve calls them."""

    async def __init__(self, device_class: DeviceClass) -> None:  # type: ignore[misc]
        from ray import serve

        # Ray awaits it, in the event loop of the calls, and counts the replica in afterwards.
        settings = dataclasses.replace(
            EvaluatorSettings.from_environment(os.environ),
            device_kinds=(device_class.device,),
            unsafe_no_sandbox=device_class.unsafe_no_sandbox,
        )
        security = ServerSecurity(
            tokens=_path(device_class.tokens),
            usage=_path(device_class.usage),
            audit_log=_path(device_class.audit_log),
        )
        self._guards = Guards(security, asks_for_tokens=True)
        self._service = evaluator_service(LocalEvaluator(settings))
        name = serve.get_replica_context().app_name
        self.carried = CarriedService(self._service, self._guards.interceptors, name)
        await self._service.prepare()

    async def __del__(self) -> None:
        """End the processes below; Ray awaits it once no call is left."""
        await self._service.close()
        self._guards.close()


@dataclass(frozen=True, slots=True)
class _Answer:
    """The bytes of an answer, as what Ray Serve takes for a message."""

    data: bytes

    def SerializeToString(self) -> bytes:  # noqa: N802  Ray's name
        """Return them."""
        return self.data


def _unary(name: str) -> Any:
    async def method(self: Replica, request: bytes, grpc_context: CallContext) -> _Answer:
        return _Answer(await self.carried.answer(name, request, grpc_context))

    return method


def _streaming(name: str) -> Any:
    async def method(
        self: Replica, request: bytes, grpc_context: CallContext
    ) -> AsyncIterator[_Answer]:
        async for answer in self.carried.answers(name, request, grpc_context):
            yield _Answer(answer)

    return method


for _method in SERVICE.methods:
    _make = _streaming if _method.server_streaming else _unary
    setattr(Replica, _method.name, _make(_method.name))


def add_methods(servicer: Any, server: Any) -> None:
    """Register the service with Ray Serve's ingress."""
    add_raw_methods(SERVICE, servicer, server)


def listen_on_loopback() -> None:
    """Have the ingress that starts in this process listen for its host alone.

    Ray has no option for that: its ingress listens at all addresses, without TLS.
    """
    from ray.serve._private import default_impl

    def add_address(server: Any, address: str) -> None:
        server.add_insecure_port(f"127.0.0.1:{address.rpartition(':')[2]}")

    default_impl.add_grpc_address = add_address


def application(arguments: Mapping[str, Any]) -> Any:
    """Return the application of a device class, for `serve.run` or a configuration of Serve.

    Raises:
        InvalidArgumentError: the arguments are none of a `DeviceClass`.
        PackageMissingError: Ray is not installed.
    """
    try:
        from ray import serve
    except ImportError as error:
        raise PackageMissingError(
            "this needs the extra: pip install 'kernel-foundry[ray]'", package="ray"
        ) from error
    asked = DeviceClass.from_arguments(arguments)
    actor: dict[str, Any] = {"num_cpus": asked.cpus, "num_gpus": int(asked.device == "cuda")}
    if asked.accelerator_type:
        actor["accelerator_type"] = asked.accelerator_type
    # The device is the host's cores, which a second replica would disturb.
    per_host = {"max_replicas_per_node": 1} if asked.device == "sycl" else {}
    deployment = serve.deployment(Replica).options(
        name="evaluator",
        ray_actor_options=actor,
        max_ongoing_requests=MOST_ONGOING,
        max_queued_requests=MOST_ONGOING,
        autoscaling_config={
            "min_replicas": asked.min_replicas,
            "max_replicas": asked.max_replicas,
            "initial_replicas": max(asked.min_replicas, 1),
            "target_ongoing_requests": asked.queue,
        },
        graceful_shutdown_timeout_s=asked.drain_seconds,
        **per_host,
    )
    return deployment.bind(asked)


def _path(text: str) -> Path | None:
    return Path(text) if text else None
