"""Loops on a fleet whose evaluators are killed at random: is anything lost, or recorded twice?

Six evaluators of two classes are processes on loopback with TLS that ask for tokens; each judges by
a fake device. Several loops with a fake model run on them, each with a fleet of its own, while
evaluators are killed, started again, drained and taken back by the fleet file. Afterwards each run
is compared with what was proposed, and with the classes of the devices that judged.

Run: python -m benchmarks.fleet_drill [--seconds 60] [--loops 6] [--out FILE]
"""

import argparse
import asyncio
import contextlib
import datetime
import ipaddress
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from archive_svc.archive import LocalArchive
from benchmarks.free_port import free_port
from benchmarks.result_file import out_option, write_host_result
from evaluator_svc.service import evaluator_service
from kernel_foundry.domain.archive import ArchivedEvaluation, RunState
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.mechanisms import SWEEPS
from kernel_foundry.domain.request import EvaluationLimits
from kernel_foundry.domain.task import Task, Workload
from kernel_foundry.domain.traffic_bound import NEVER
from kernel_foundry.rpc.connection import CallOptions, RetryPolicy
from kernel_foundry.rpc.evaluator import RemoteEvaluator
from kernel_foundry.rpc.readiness import wait_until_serving
from kernel_foundry.rpc.security import ServerSecurity
from kernel_foundry.rpc.server import serve
from kernel_foundry.rpc.tokens import Role, TokenFile
from kernel_foundry.sdk.fleet.fleet import Fleet
from kernel_foundry.sdk.fleet.membership import FileSource
from kernel_foundry.sdk.loop.budget import Budget
from kernel_foundry.sdk.optimization import optimize
from kernel_foundry.sdk.services import Services
from kernel_foundry.testing.evaluator import FAKE_DEVICE, FakeEvaluator
from kernel_foundry.testing.generator import FakeGenerator

NAME: Final = "fleet_drill"
EVALUATORS: Final = 6
CLASSES: Final = 2
MEAN_S: Final = 0.3
KILL_EVERY_S: Final = 3.0
CERTIFICATE: Final = "drill.pem"
KEY: Final = "drill.key"
TOKENS: Final = "tokens.json"
_ONCE: Final = CallOptions(retry=RetryPolicy(attempts=1))


async def serve_fake(port: int, model: str, folder: Path) -> None:
    """Serve one evaluator until it is killed."""

    async def take_time() -> None:
        await asyncio.sleep(random.expovariate(1 / MEAN_S))

    device = replace(FAKE_DEVICE, id="null:0", name=model)
    evaluator = FakeEvaluator(take_time, device)
    security = ServerSecurity(
        certificate=folder / CERTIFICATE,
        key=folder / KEY,
        tokens=folder / TOKENS,
        audit_log=Path(os.devnull),
    )
    await serve([evaluator_service(evaluator)], f"127.0.0.1:{port}", security=security)


class Hosts:
    """The evaluators' processes.

    Args:
        folder: For the fleet file and the tokens.
    """

    def __init__(self, folder: Path) -> None:
        self.file = folder / "fleet.yaml"
        self._folder = folder
        self.ports = [free_port() for _ in range(EVALUATORS)]
        self.kills = 0
        self._processes: dict[int, asyncio.subprocess.Process] = {}

    async def start(self, port: int) -> None:
        """Start one, and wait until it serves."""
        model = f"model {self.ports.index(port) % CLASSES}"
        arguments = ("-m", "benchmarks.fleet_drill", "--serve", str(port), model, str(self._folder))
        while True:
            process = await asyncio.create_subprocess_exec(
                sys.executable, *arguments, stderr=asyncio.subprocess.DEVNULL
            )
            self._processes[port] = process
            serving = asyncio.create_task(wait_until_serving(f"127.0.0.1:{port}", timeout_s=60))
            ended = asyncio.create_task(process.wait())
            await asyncio.wait({serving, ended}, return_when=asyncio.FIRST_COMPLETED)
            ended.cancel()
            if serving.done():
                return await serving
            serving.cancel()  # its port was somebody's for a moment
            await asyncio.sleep(0.5)

    def list(self, drained: int | None = None) -> None:
        """Write the fleet file."""
        part = self.file.with_suffix(".part")
        lines = (
            f"  - {{address: '127.0.0.1:{p}', drain: {str(p == drained).lower()}}}"
            for p in self.ports
        )
        part.write_text("evaluators:\n" + "\n".join(lines) + "\n")
        part.replace(self.file)

    async def harm(self, draw: random.Random) -> None:
        """Kill and drain at random, for ever."""
        while True:
            await asyncio.sleep(draw.expovariate(1 / KILL_EVERY_S))
            port = draw.choice(self.ports)
            self.list(draw.choice([None, draw.choice(self.ports)]))
            await self._kill(port)
            self.kills += 1
            await self.start(port)

    async def end(self) -> None:
        """End all."""
        self.list()
        for port in list(self._processes):
            await self._kill(port)

    async def _kill(self, port: int) -> None:
        process = self._processes.pop(port)
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
        await process.wait()


async def drill(folder: Path, seconds: float, loops: int, seed: int) -> dict[str, Any]:
    """Return what became of the runs."""
    hosts = Hosts(folder)
    write_certificate(folder)
    os.environ["KERNEL_FOUNDRY_TLS_CA"] = str(folder / CERTIFICATE)
    os.environ["KERNEL_FOUNDRY_TOKEN"] = TokenFile(folder / TOKENS).create("drill", Role.RUN, 1)
    hosts.list()
    await asyncio.gather(*map(hosts.start, hosts.ports))
    archive = LocalArchive(f"sqlite:///{folder}/runs.db")
    harm = asyncio.create_task(hosts.harm(random.Random(seed)))
    began_s = time.monotonic()

    async def loop(number: int) -> dict[str, Any]:
        generator = FakeGenerator()
        fleet = Fleet(FileSource(hosts.file), lambda address: RemoteEvaluator(address, _ONCE))
        reference = f"class Model: ...  # {number}"
        task = Task(name="drill", reference=reference, workloads=(Workload(name="default"),))
        name = f"drill-{number}"
        ended = await optimize(
            Services(evaluator=fleet, archive=archive, generator=generator),
            task,
            language=Language.SYCL,
            device="null",
            models=(),
            budget=Budget(minutes=seconds / 60, stop_at=NEVER),
            limits=EvaluationLimits(),
            run=name,
            seed=number,
            in_flight=4,
            without=(SWEEPS,),
            listener=lambda _event: None,
        )
        await fleet.close()
        found: list[ArchivedEvaluation] = []
        while page := await archive.evaluations(name, after=len(found), limit=100):
            found += page
        return _checked(
            found, generator, hosts.ports, is_finished=ended.run.state is RunState.FINISHED
        )

    try:
        runs = await asyncio.gather(*map(loop, range(loops)))
    finally:
        harm.cancel()
        await asyncio.gather(harm, return_exceptions=True)
        await hosts.end()
    seconds = time.monotonic() - began_s
    await archive.close()
    total = Counter[str]()
    for run in runs:
        total.update(run)
    return {
        "evaluators": EVALUATORS,
        "loops": loops,
        "seconds": seconds,
        "kills": hosts.kills,
        **total,
    }


def _checked(
    found: list[ArchivedEvaluation],
    generator: FakeGenerator,
    ports: list[int],
    *,
    is_finished: bool,
) -> dict[str, int]:
    """Compare a run's record with what was proposed and reported, and its devices."""
    searched = [e for e in found if not e.evaluation.is_final]
    archived = Counter(e.candidate.digest for e in searched)
    reported = {outcome.candidate.digest for outcome in generator.reported.values()}
    hosts = {e.evaluation.device.rpartition(":")[2] for e in found if "@" in e.evaluation.device}
    lost = [f for e in found for f in e.evaluation.findings if f.kind is FindingKind.HOST_LOST]
    return {
        "verdicts": len(searched),
        "finished": is_finished,
        "reported_and_not_recorded": len(reported - archived.keys()),
        "recorded_and_not_reported": len(archived.keys() - reported),
        "recorded_twice": sum(count > 1 for count in archived.values()),
        "runs_on_two_classes": len({ports.index(int(port)) % CLASSES for port in hosts}) > 1,
        "quarantined": len(lost),
    }


def write_certificate(folder: Path) -> None:
    """Write a certificate for loopback that is its own authority, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "drill")])
    now = datetime.datetime.now(datetime.UTC)
    here = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([here]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / CERTIFICATE).write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / KEY).write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )


def main() -> None:
    """Drill and write the result, or serve one evaluator of the drill."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--loops", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    out_option(parser, NAME)
    arguments = parser.parse_args()
    if arguments.serve:
        port, model, folder = arguments.serve
        asyncio.run(serve_fake(int(port), model, Path(folder)))
        return
    with tempfile.TemporaryDirectory() as folder:
        os.environ["KERNEL_FOUNDRY_DATA_DIR"] = folder
        found = asyncio.run(drill(Path(folder), arguments.seconds, arguments.loops, arguments.seed))
    write_host_result(arguments.out, NAME, found)


if __name__ == "__main__":
    main()
