"""The figures of a service for Prometheus; off unless `--metrics` gives an address.

Figures come from calls and their answers, in `observation.py`; the names are in
docs/observability.md. No figure names a user, a task or a candidate.
"""

import logging
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

from kernel_foundry.common.v1.evaluation_pb2 import EvaluationOutcome
from kernel_foundry.errors import InvalidArgumentError, PackageMissingError, ServiceUnavailableError
from kernel_foundry.evaluator.v1.sweep_pb2 import Validity
from kernel_foundry.rpc.address import check_address
from kernel_foundry.rpc.security import ServerSecurity, is_loopback

_log = logging.getLogger(__name__)

_CALL_BUCKETS: Final = (0.005, 0.02, 0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256, 600)
_STAGE_BUCKETS: Final = (0.001, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
_MOST_NAMES: Final = 64
"""Different models, and devices, that are told apart: callers name models."""
_OTHER: Final = "other"
_MS: Final = 1e-3
_CLIENT_S: Final = 10.0
"""In which a client of the figures has to say something."""


class Metrics:
    """The figures of one process.

    Args:
        registry: Prometheus' registry that they are in.
    """

    def __init__(self, registry: Any) -> None:
        from prometheus_client import Counter, Gauge, Histogram

        def counter(name: str, text: str, *labels: str) -> Any:
            return Counter(f"kfoundry_{name}", text, labels, registry=registry)

        self._in_flight: Any = Gauge(
            "kfoundry_calls_in_flight",
            "Calls that are being answered or wait for a device.",
            ("method",),
            registry=registry,
        )
        self._calls: Any = Histogram(
            "kfoundry_call_seconds",
            "Calls by how they ended.",
            ("method", "code"),
            buckets=_CALL_BUCKETS,
            registry=registry,
        )
        self._pending: Any = Gauge(
            "kfoundry_device_pending",
            "Calls that use a device or wait for it, as last asked.",
            ("device",),
            registry=registry,
        )
        self._stages: Any = Histogram(
            "kfoundry_stage_seconds",
            "Wall time of a verdict's stages.",
            ("device", "stage"),
            buckets=_STAGE_BUCKETS,
            registry=registry,
        )
        self._verdicts = counter("verdicts", "Verdicts by outcome.", "device", "outcome")
        self._configurations = counter("configurations", "Of sweeps, by validity.", "validity")
        self._usd = counter("model_usd", "What models cost, in USD.", "model")
        self._tokens = counter("model_tokens", "Tokens of models.", "model", "direction")
        self._models = _Names()
        self._devices = _Names()
        self._readers: Mapping[str, Callable[[Any], None]] = {
            "EvaluateKernel": lambda answer: self._verdict(answer.evaluation),
            "EvaluateForeign": lambda answer: self._verdict(answer.evaluation),
            "GetCapabilities": lambda answer: self._loads(answer.capabilities.loads),
            "ProposeCandidate": lambda answer: self._usage(answer.proposal.usage),
            "SweepKernel": lambda answer: self._configuration(answer.result),
        }

    def began(self, method: str) -> None:
        """Count a call that begins."""
        self._in_flight.labels(method).inc()

    def ended(self, method: str, code: str, seconds: float) -> None:
        """Count a call that ended."""
        self._in_flight.labels(method).dec()
        self._calls.labels(method, code).observe(seconds)

    def answered(self, method: str, answer: Any) -> None:
        """Count what an answer says; of a stream each one."""
        reader = self._readers.get(method)
        if reader is not None:
            reader(answer)

    def _verdict(self, evaluation: Any) -> None:
        device = self._devices.known(evaluation.device)
        outcome = EvaluationOutcome.Name(evaluation.outcome).removeprefix("EVALUATION_OUTCOME_")
        self._verdicts.labels(device, outcome).inc()
        for stage in evaluation.stages:
            self._stages.labels(device, stage.stage).observe(stage.wall_ms * _MS)

    def _configuration(self, result: Any) -> None:
        validity = Validity.Name(result.validity).removeprefix("VALIDITY_")
        self._configurations.labels(validity).inc()

    def _loads(self, loads: Any) -> None:
        for load in loads:
            self._pending.labels(self._devices.known(load.device)).set(load.pending)

    def _usage(self, usages: Any) -> None:
        for usage in usages:
            model = self._models.known(usage.model)
            self._usd.labels(model).inc(max(usage.cost_usd, 0.0))
            self._tokens.labels(model, "in").inc(max(usage.input_tokens, 0))
            self._tokens.labels(model, "out").inc(max(usage.output_tokens, 0))


class _Names:
    """Label values, so many that no caller fills the memory with them."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    def known(self, name: str) -> str:
        if name not in self._names and len(self._names) >= _MOST_NAMES:
            return _OTHER
        self._names.add(name)
        return name


def serve_metrics(address: str, security: ServerSecurity) -> Metrics:
    """Answer Prometheus at an address, by HTTP or HTTPS, as long as the process lives.

    Args:
        address: `HOST:PORT`.
        security: With a certificate it is HTTPS, and client certificates are asked for as the
            service does. Tokens are not: the figures name nobody.

    Raises:
        InvalidArgumentError: that is no address, or it can be reached from other machines and
            neither a certificate nor `insecure` is given; or a file of TLS cannot be used.
        PackageMissingError: the extra is not installed.
        ServiceUnavailableError: the address cannot be bound.
    """
    check_address(address, "--metrics", takes_unix=False)
    host, _, port = address.rpartition(":")
    security.read_files()  # Prometheus' client would serve without TLS where one is missing
    if not (is_loopback(address) or security.certificate or security.insecure):
        raise InvalidArgumentError(
            f"--metrics {address} can be reached from other machines: give --tls-cert and"
            " --tls-key, listen on localhost, or say --insecure inside a network that you trust",
            field="metrics",
        )
    try:
        from prometheus_client import REGISTRY, start_http_server
    except ImportError as error:
        raise PackageMissingError(
            "--metrics needs the extra: pip install 'kernel-foundry[observability]'",
            package="prometheus-client",
        ) from error
    try:
        server, _thread = start_http_server(
            int(port),
            host.strip("[]"),
            certfile=_text(security.certificate),
            keyfile=_text(security.key),
            client_cafile=_text(security.client_ca),
            client_auth_required=security.client_ca is not None,
        )
    except OSError as error:
        raise ServiceUnavailableError(
            f"cannot serve metrics at {address}: {error.strerror or error}", target=address
        ) from error
    _bound_clients(server)
    return Metrics(REGISTRY)


def _bound_clients(server: Any) -> None:
    """Let no client that says nothing keep others from a server of figures, or a thread of it."""
    handler = server.RequestHandlerClass
    server.RequestHandlerClass = type(handler.__name__, (handler,), {"timeout": _CLIENT_S})
    # Otherwise TLS begins in the one thread that accepts connections; so in the connection's own.
    if hasattr(server.socket, "do_handshake_on_connect"):  # a socket of TLS
        server.socket.do_handshake_on_connect = False
    server.handle_error = _note_failure


def _note_failure(_request: object, client: tuple[str, int]) -> None:
    _log.info("a client of the metrics at %s failed: %r", client[0], sys.exception())


def _text(path: object) -> str | None:
    return None if path is None else str(path)
