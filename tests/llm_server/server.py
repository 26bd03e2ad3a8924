"""The server: threads, keep-alive connections, every request recorded.

A behaviour decides each answer; it is called in the connection's thread.
"""

import contextlib
import json
import math
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import Any, Final

from tests.llm_server import embedding
from tests.llm_server.answers import Answer, error, good

_POLL_SECONDS: Final = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedRequest:
    """One HTTP request as it came."""

    number: int
    """1 for the first."""
    path: str
    headers: dict[str, str]
    """Names in lower case."""
    body: dict[str, Any]
    received_unix_s: float

    @property
    def model(self) -> str:
        """The model asked, without LiteLLM's provider prefix."""
        return str(self.body.get("model", ""))

    @property
    def text(self) -> str:
        """All messages, one after the other."""
        return "\n\n".join(str(m.get("content")) for m in self.body.get("messages", ()))

    @property
    def key(self) -> str:
        """The API key sent."""
        return self.headers.get("authorization", "").removeprefix("Bearer ")


Behaviour = Callable[[ReceivedRequest], Answer]
"""What is answered to a chat completion."""


def scripted(answers: Sequence[Answer]) -> Behaviour:
    """Return a behaviour that gives `answers` in order and repeats the last one."""
    script, lock = list(answers), threading.Lock()

    def play(_: ReceivedRequest) -> Answer:
        with lock:
            return script.pop(0) if len(script) > 1 else script[0]

    return play


class LlmServer:
    """An OpenAI-compatible server on the loopback. Use as a context manager.

    Args:
        behaviour: Answers chat completions; may be set anew at any time.
        port: 0 takes a free one.
    """

    def __init__(
        self, behaviour: Behaviour | None = None, *, port: int = 0, host: str = "127.0.0.1"
    ) -> None:
        self.behaviour: Behaviour = behaviour or (lambda _: good("ok"))
        self.requests: list[ReceivedRequest] = []
        """Chat completions asked, those that failed too."""
        self.embedding_requests: list[ReceivedRequest] = []
        self.most_in_flight = 0
        """Most chat completions that were unanswered at once."""
        self.in_flight = 0
        """Chat completions that are unanswered now."""
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._failure: Exception | None = None
        self._sockets = _Sockets((host, port), self._handler())
        self._thread = threading.Thread(
            target=self._sockets.serve_forever, args=(_POLL_SECONDS,), name="llm-server"
        )

    def __enter__(self) -> "LlmServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End every connection; a behaviour that raised raises here."""
        self._stopping.set()
        self._sockets.shutdown()
        self._thread.join()
        self._sockets.end_connections()
        self._sockets.server_close()
        if self._failure is not None:
            raise self._failure

    @property
    def port(self) -> int:
        return int(self._sockets.server_address[1])

    @property
    def base_url(self) -> str:
        """What `OPENAI_BASE_URL` is set to."""
        return f"http://{self._sockets.server_address[0]!s}:{self.port}/v1"

    def play(self, *answers: Answer) -> None:
        """Give these answers in order from now on; the last one repeats."""
        self.behaviour = scripted(answers)

    def forget(self) -> None:
        """Forget every request received."""
        with self._lock:
            self.requests.clear()
            self.embedding_requests.clear()
            self.most_in_flight = 0

    def _answer(self, path: str, headers: dict[str, str], raw: bytes) -> Answer:
        body = json.loads(raw or b"{}")
        is_chat = path.endswith("/chat/completions")
        if not is_chat and not path.endswith("/embeddings"):
            return error(404, "not_found")
        log = self.requests if is_chat else self.embedding_requests
        with self._lock:
            request = ReceivedRequest(
                number=len(log) + 1,
                path=path,
                headers=headers,
                body=body,
                received_unix_s=time.time(),
            )
            log.append(request)
        if not is_chat:
            return Answer(document=embedding.document(body))
        try:
            return self.behaviour(request)
        except Exception as failure:  # noqa: BLE001  a thread's; raised when the server closes
            self._failure = self._failure or failure
            return error(500, "server_error", f"the behaviour raised {failure!r}")

    def _begin(self) -> None:
        with self._lock:
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)

    def _end(self) -> None:
        with self._lock:
            self.in_flight -= 1

    def _handler(owner) -> type[BaseHTTPRequestHandler]:  # noqa: N805  two selfs below
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # headers and body are two writes

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                headers = {name.lower(): value for name, value in self.headers.items()}
                owner._begin()
                try:
                    answer = owner._answer(self.path, headers, raw)
                    asked = str(json.loads(raw or b"{}").get("model", ""))
                    self._wait(math.inf if answer.hangs else answer.delay_seconds)
                finally:
                    owner._end()
                self._send(answer, asked)

            def _send(self, answer: Answer, asked: str) -> None:
                if answer.hangs or answer.is_dropped:
                    self.close_connection = True
                    return
                body = _body(answer, asked)
                self.send_response(answer.status)
                self.send_header("Content-Type", answer.content_type)
                self.send_header("Content-Length", str(len(body)))
                for name, value in answer.headers:
                    self.send_header(name, value)
                self.end_headers()
                self._write(body[: int(len(body) * answer.sent_share)], answer.trickle_seconds)
                self.close_connection = self.close_connection or answer.sent_share < 1.0

            def _wait(self, seconds: float) -> None:
                """Wait so long, or until nobody waits for the answer any more."""
                end_s = time.monotonic() + seconds
                while (left_s := end_s - time.monotonic()) > 0 and not self._is_abandoned():
                    if owner._stopping.wait(min(left_s, _POLL_SECONDS)):
                        return

            def _is_abandoned(self) -> bool:
                try:
                    return not self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
                except BlockingIOError:
                    return False
                except OSError:
                    return True

            def _write(self, body: bytes, trickle_seconds: float) -> None:
                if not trickle_seconds:
                    self.wfile.write(body)
                    return
                for value in body:
                    self.wfile.write(bytes([value]))
                    owner._stopping.wait(trickle_seconds)

            def log_message(self, *_: object) -> None:
                """Keep the test output clean."""

        return Handler


def _body(answer: Answer, asked: str) -> bytes:
    if answer.document is None:
        return answer.body
    document = dict(answer.document)
    if document.get("object") == "chat.completion":
        document.setdefault("model", asked)
    return json.dumps(document).encode()


class _Sockets(socketserver.ThreadingTCPServer):
    request_queue_size = 128
    allow_reuse_address = True
    daemon_threads = False  # then closing waits for them

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(address, handler)
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Remember the connection."""
        with self._lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Forget the connection."""
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def end_connections(self) -> None:
        """End those that clients keep open."""
        with self._lock:
            for connection in self._open:
                with contextlib.suppress(OSError):  # the client may have ended it
                    connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a client that stopped waiting has gone."""
