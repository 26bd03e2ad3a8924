"""`kfoundry serve gateway`: one address for evaluators behind Ray Serve, archive and generator."""

from collections.abc import Iterator
from typing import Final, TypeAlias

import click
import grpc
from google.protobuf.descriptor import ServiceDescriptor

from kernel_foundry.archive.v1 import archive_service_pb2 as archive_pb2
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.evaluator.v1 import evaluator_service_pb2 as evaluator_pb2
from kernel_foundry.generator.v1 import experience_service_pb2 as experience_pb2
from kernel_foundry.generator.v1 import generator_service_pb2 as generator_pb2
from kernel_foundry.rpc.address import check_address
from kernel_foundry.rpc.applications import LIST_APPLICATIONS
from kernel_foundry.rpc.connection import CLIENT_OPTIONS
from kernel_foundry.rpc.forwarding import forwarding_service
from kernel_foundry.rpc.metrics import Metrics
from kernel_foundry.rpc.process import child_option, listen_option, run, service_options
from kernel_foundry.rpc.security import ClientSecurity, ServerSecurity, is_loopback, is_unix
from kernel_foundry.rpc.server import GRACE_S, Service, serve
from kernel_foundry.rpc.token_check import check_applications, check_service

_EVALUATOR: Final = evaluator_pb2.DESCRIPTOR.services_by_name["EvaluatorService"]
_ARCHIVE: Final = archive_pb2.DESCRIPTOR.services_by_name["ArchiveService"]
_GENERATOR: Final = generator_pb2.DESCRIPTOR.services_by_name["GeneratorService"]
_EXPERIENCE: Final = experience_pb2.DESCRIPTOR.services_by_name["ExperienceService"]
_LOOKS: Final = {
    _EVALUATOR: "GetCapabilities",
    _ARCHIVE: "ListRuns",
    _GENERATOR: "ListModels",
    _EXPERIENCE: "ListLessons",
}
"""A method of each that only reads and takes an empty request."""
_LOOPBACK: Final = "127.0.0.1"
_ENDLESS: Final = frozenset({"WatchRun"})

_Behind: TypeAlias = tuple[ServiceDescriptor, str, grpc.aio.Channel]
"""A service, its address, and a channel there."""


@click.command()
@listen_option(50050)
@click.option(
    "--ingress",
    default="",
    metavar="HOST:PORT",
    help="Evaluators: Ray Serve's ingress on this host (`kfoundry fleet`).",
)
@click.option("--archive", default="", metavar="HOST:PORT", help="Where the archive is.")
@click.option("--generator", default="", metavar="HOST:PORT", help="Where the generator is.")
@click.option(
    "--grace", default=GRACE_S, show_default=True, help="Seconds for calls in flight at the end."
)
@service_options
@child_option
def main(
    listen: str,
    ingress: str,
    archive: str,
    generator: str,
    grace: float,
    security: ServerSecurity,
    metrics: Metrics | None,
) -> None:
    """Hand calls on to evaluators, the archive and the generator until SIGTERM or SIGINT.

    Give each of them the same --tokens: they know by them who calls, and count quotas. One that
    answers without a token is refused at the start.
    """
    if not (ingress or archive or generator):
        raise click.UsageError("give --ingress, --archive or --generator")

    async def serving() -> None:
        if security.tokens is not None:
            await check_tokens(ingress=ingress, archive=archive, generator=generator)
        services = [*gateway_services(ingress=ingress, archive=archive, generator=generator)]
        await serve(services, listen, grace_s=grace, security=security, metrics=metrics)

    run(serving(), "gateway")


def gateway_services(
    *, ingress: str = "", archive: str = "", generator: str = ""
) -> Iterator[Service]:
    """Yield the services of a gateway, those whose address is given.

    Raises:
        InvalidArgumentError: that is no address, tokens would travel readable to another machine,
            or the service there would not ask for them; or a file of `KERNEL_FOUNDRY_TLS_…` cannot
            be read.
    """
    for service, _, channel in _behind(ingress, archive, generator):
        more = (LIST_APPLICATIONS,) if service is _EVALUATOR else ()
        yield forwarding_service(service, channel, more, endless=_ENDLESS)


async def check_tokens(*, ingress: str = "", archive: str = "", generator: str = "") -> None:
    """Refuse services that answer without a token; one that is away is warned of.

    Raises:
        InvalidArgumentError: there is one; or as `gateway_services`.
    """
    for service, address, channel in _behind(ingress, archive, generator):
        check = check_applications if service is _EVALUATOR else check_service
        async with channel:
            await check(channel, f"/{service.full_name}/{_LOOKS[service]}", address)


def _behind(ingress: str, archive: str, generator: str) -> Iterator[_Behind]:
    if ingress:
        check_address(ingress, "--ingress", first_port=1)
        if not is_loopback(ingress):
            raise InvalidArgumentError(
                f"--ingress {ingress}: Ray's ingress has no TLS; run the gateway on one of its"
                f" hosts and name it as {_LOOPBACK}:PORT",
                field="ingress",
            )
        host, _, port = ingress.rpartition(":")
        # It listens at that one alone, and a name may stand for ::1 first.
        address = f"{_LOOPBACK}:{port}" if host == "localhost" else ingress
        yield _EVALUATOR, address, grpc.aio.insecure_channel(address, options=CLIENT_OPTIONS)
    client = ClientSecurity.from_environment()
    for service, target in (
        (_ARCHIVE, archive),
        (_GENERATOR, generator),
        (_EXPERIENCE, generator),
    ):
        if target:
            _check(target, client)
            yield service, target, client.channel(target, CLIENT_OPTIONS)


def _check(target: str, client: ClientSecurity) -> None:
    if is_unix(target):
        raise InvalidArgumentError(
            f"{target}: a UNIX socket asks for no tokens, so that all callers would be one; use"
            " localhost:PORT",
            field="target",
        )
    check_address(target, "target", first_port=1)
    client.check_private(target)


if __name__ == "__main__":
    main(prog_name="kfoundry serve gateway")
