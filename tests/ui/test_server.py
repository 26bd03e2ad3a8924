"""The server: who is answered, with what, and what is not."""

import http.client
import json
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from archive_svc.archive import LocalArchive
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.sdk.report.page import page_files
from kernel_foundry.sdk.services import Targets
from kernel_foundry.ui.http import LARGEST_BODY, LARGEST_HEAD
from kernel_foundry.ui.server import MOST_CONNECTIONS, PageServer
from tests.domain_values import run_spec
from tests.ui.conftest import EVALUATIONS, with_archive


class Client:
    """A client of the page that sends what it is told to.

    Args:
        address: What `kfoundry ui` prints.
    """

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self.host = parts.netloc
        self.port = int(parts.port or 0)
        self.entry = f"{parts.path}?{parts.query}"
        self.cookie = ""

    def ask(
        self, path: str, method: str = "GET", sent: bytes | None = None, **headers: str
    ) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        fields = {"Host": self.host, "Cookie": self.cookie} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        connection.request(method, path, sent, headers=fields)
        answer = connection.getresponse()
        self.body = answer.read()
        connection.close()
        return answer

    def json(self, path: str) -> object:
        """Return the object of an answer."""
        assert self.ask(path).status == 200, self.body
        return json.loads(self.body)

    def events(self, path: str, **headers: str) -> list[tuple[str, str, object]]:
        """Return (event, id, data) of a stream that ends."""
        assert self.ask(path, **headers).status == 200, self.body
        found = []
        for block in self.body.decode().split("\n\n"):
            fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
            if "data" in fields:
                found.append((fields["event"], fields.get("id", ""), json.loads(fields["data"])))
        return found

    def raw(self, request: bytes) -> bytes:
        """Return what comes back for bytes that need be no HTTP."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as connection:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.fixture
def stranger(address: str) -> Client:
    """Somebody without the token."""
    return Client(address)


@pytest.fixture
def client(address: str) -> Iterator[Client]:
    """Somebody who opened the address that was printed."""
    made = Client(address)
    answer = made.ask(made.entry)
    assert (answer.status, answer.getheader("Location")) == (303, "/")
    cookie = answer.getheader("Set-Cookie") or ""
    assert {"HttpOnly", "SameSite=Strict"} < set(cookie.split("; "))
    made.cookie = cookie.split(";")[0]
    return made


@pytest.mark.parametrize("path", ["/", "/page/main.js", "/api/runs", "/api/runs/recorded/events"])
def test_without_the_token_nothing_is_shown(stranger: Client, path: str) -> None:
    assert stranger.ask(path).status == 403
    assert stranger.ask(path, Cookie=f"kfoundry-{stranger.port}=guessed").status == 403
    assert stranger.ask("/?token=guessed").status == 403
    assert stranger.ask("/?token=%C3%A9%00").status == 403
    assert b"recorded" not in stranger.body


def test_a_stranger_has_no_body_read(address: str) -> None:
    """The answer comes before the first byte of a body that is announced."""
    stranger = Client(address)
    head = f"POST /api/runs/recorded/steering HTTP/1.1\r\nHost: 127.0.0.1:{stranger.port}\r\n"
    with socket.create_connection(("127.0.0.1", stranger.port), timeout=20) as connection:
        connection.sendall(f"{head}Content-Length: 2000000\r\n\r\n".encode())
        assert b" 403 " in connection.recv(65536).partition(b"\r\n")[0]


def _connected(client: Client, sent: str) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", client.port), timeout=30)
    connection.sendall(sent.replace("\n", "\r\n").encode())
    return connection


def test_a_client_that_breaks_off_leaves_no_traceback(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    head = f"HTTP/1.1\nHost: {client.host}\nCookie: {client.cookie}\n"
    posted = f"Content-Type: application/json\nOrigin: http://{client.host}\nContent-Length: 99\n"
    broken = (
        "GET / HTT",
        f"POST /api/runs/recorded/steering {head}{posted}\n{{",
        f"GET /api/runs {head}\n",
        f"GET /api/runs/recorded/events {head}\n",
    )
    for sent in broken:
        connection = _connected(client, sent)
        # Closed with what came unread: the server's side is reset.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
    assert client.ask("/api/runs").status == 200
    assert not caplog.records


def test_connections_are_bounded_and_silent_ones_keep_nobody_out(
    client: Client, data: Path
) -> None:
    """Pages that follow a run count until they are closed, which is noticed at once."""
    silent = [_connected(client, "") for _ in range(MOST_CONNECTIONS + 1)]
    assert client.ask("/api/runs").status == 200

    async def begin(archive: LocalArchive) -> None:
        await archive.create_run(run_spec("followed", seed=5))

    async def end(archive: LocalArchive) -> None:
        await archive.delete_run("followed")

    with_archive(data, begin)
    head = f"HTTP/1.1\nHost: {client.host}\nCookie: {client.cookie}\n\n"
    following = []
    try:
        for _ in range(MOST_CONNECTIONS):
            following.append(_connected(client, f"GET /api/runs/followed/events {head}"))
            assert b" 200 " in following[-1].recv(64)
        assert client.ask("/api/runs").status == 503
    finally:
        for connection in (*following, *silent):
            connection.close()
        with_archive(data, end)
    for _ in range(100):
        if client.ask("/api/runs").status == 200:
            break
        threading.Event().wait(0.1)
    assert client.ask("/api/runs").status == 200


def test_the_cookie_is_found_among_others(client: Client) -> None:
    own = client.cookie
    for cookies in (f'other="a;b"; {own}', f"{own};x=y", f"junk; =; {own}"):
        assert client.ask("/api/runs", Cookie=cookies).status == 200
    for cookies in (f"x{own}", f'a="{own}"', own[:-1]):
        assert client.ask("/api/runs", Cookie=cookies).status == 403


def test_names_that_a_foreign_dns_may_point_here_are_refused(client: Client) -> None:
    for host in ("evil.example", f"evil.example:{client.port}", "127.0.0.1.evil.example", ""):
        assert client.ask("/api/runs", Host=host).status == 421
        assert client.ask(client.entry, Host=host).getheader("Set-Cookie") is None
    for host in ("localhost", f"localhost:{client.port}", "127.0.0.1:8321", "[::1]:80"):
        assert client.ask("/api/runs", Host=host).status == 200


def test_every_answer_allows_the_pages_own_scripts_alone(client: Client) -> None:
    for path in ("/", "/page/run.js", "/api/runs", "/nowhere", "/api/runs/none"):
        answer = client.ask(path)
        policy = answer.getheader("Content-Security-Policy") or ""
        directives = {
            name: rest for name, _, rest in (d.strip().partition(" ") for d in policy.split(";"))
        }
        assert directives["default-src"] == "'none'"
        assert directives["script-src"] == directives["connect-src"] == "'self'"
        assert directives["frame-ancestors"] == "'none'"
        assert answer.getheader("X-Content-Type-Options") == "nosniff"
        assert answer.getheader("Cache-Control") == "no-store"


def test_files_of_the_page_alone_are_served(client: Client) -> None:
    for name in page_files():
        assert client.ask(f"/page/{name}").status == 200
    for path in (
        "/page/../server.py",
        "/page/%2e%2e%2fserver.py",
        "/page/__init__.py",
        "/page/",
        "/etc/passwd",
        "/api",
    ):
        assert client.ask(path).status == 404, path


def test_the_page_names_no_other_host() -> None:
    for name, file in page_files().items():
        text = file.text.replace("http://www.w3.org/2000/svg", "")
        assert "http:" not in text, name
        assert "https:" not in text, name


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"403"),
        (b"GET /\r\n\r\n", b"400"),
        (b"GET http://evil/ HTTP/1.1\r\n\r\n", b"400"),
        (b"GET //evil/ HTTP/1.1\r\n\r\n", b"400"),
        (b"GET /%ff\xff HTTP/1.1\r\n\r\n", b"400"),
        (b"\x16\x03\x01\x02\x00\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nA: " + b"a" * LARGEST_HEAD + b"\r\n\r\n", b"431"),
        (b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (LARGEST_BODY + 1), b"413"),
    ],
    ids=lambda value: value.decode("latin-1")[:30],
)
def test_what_is_no_request_is_refused(
    stranger: Client, request_bytes: bytes, status: bytes
) -> None:
    assert stranger.raw(request_bytes).split()[1] == status
    assert stranger.raw(b"GET / HT") == b""


def test_run_is_listed_and_described(client: Client) -> None:
    listed = client.json("/api/runs")
    assert isinstance(listed, list)
    names = [run["run"] for run in listed]
    assert names[-2:] == ["recorded", "first"]
    head = client.json("/api/runs/recorded")
    assert isinstance(head, dict)
    assert head["evaluations"] == head["stats"]["evaluation_count"] > EVALUATIONS
    assert head["task_text"].startswith("class Model")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/runs/none", 404),
        ("/api/runs/none/events", 404),
        ("/api/suites/none", 400),
        ("/api/suites/..%2f", 400),
        ("/api/runs/%2e%2e%2f", 400),
        ("/api/runs/recorded/evaluations/0", 400),
        ("/api/runs/recorded/evaluations/999999", 400),
        ("/api/runs/recorded/evaluations/1e3", 400),
        ("/api/runs/recorded/sweeps/..%2f..%2fruns", 400),
        ("/api/runs/recorded/events?after=-1", 400),
    ],
)
def test_what_is_not_there_is_said_so(client: Client, path: str, status: int) -> None:
    assert client.ask(path).status == status
    assert client.body.strip()


def test_events_are_all_rows_then_the_state_and_go_on_where_a_browser_was(client: Client) -> None:
    events = client.events("/api/runs/recorded/events")
    rows = [row for kind, _, data in events if kind == "rows" for row in data]  # type: ignore[attr-defined]
    assert [row["sequence"] for row in rows] == list(range(1, len(rows) + 1))
    assert events[-1][0::2] == ("state", "finished")
    late = client.events("/api/runs/recorded/events", Last_Event_ID=str(len(rows) - 2))
    assert [(kind, mark) for kind, mark, _ in late] == [("rows", str(len(rows))), ("state", "")]
    assert late[0][2] == rows[-2:]
    assert client.events("/api/runs/recorded/events", Last_Event_ID=str(len(rows)))[0][0] == "state"


def test_best_of_each_row_is_that_of_the_run(client: Client) -> None:
    (kind, _, rows), *_ = client.events("/api/runs/recorded/events")
    assert kind == "rows"
    assert isinstance(rows, list)
    fittest = 0.0
    for row in rows:
        fittest = max(fittest, row["fitness"])
        assert rows[row["best"] - 1]["fitness"] == fittest


def test_an_evaluation_has_its_source_and_whole_verdict(client: Client) -> None:
    detail = client.json("/api/runs/recorded/evaluations/7")
    assert isinstance(detail, dict)
    assert detail["device_code"].startswith("// proposal 5.")
    assert detail["verdict"]["outcome"] == "PASSED"
    assert detail["verdict"]["workloads"][0]["samples_ns"]


def test_texts_are_printable_and_exchanges_are_found_by_selection(client: Client) -> None:
    exchanges = client.json("/api/runs/first/exchanges/1")
    assert isinstance(exchanges, list)
    assert r"\u202egpj." in exchanges[0]["reply"]
    assert client.json("/api/runs/first/exchanges/0") == []
    assert "\\u001b" not in client.body.decode()


PAUSE = b'{"action": "pause"}'


@pytest.mark.parametrize(
    "headers",
    [
        {"Content_Type": "application/json"},
        {"Content_Type": "application/json", "Origin": "http://evil.example"},
        {"Content_Type": "application/json", "Origin": "null"},
        {"Content_Type": "application/json", "Origin": "http://127.0.0.1:1"},
        {"Content_Type": "text/plain", "Origin": "own"},
        {"Content_Type": "application/x-www-form-urlencoded", "Origin": "own"},
    ],
    ids=lambda headers: " ".join(headers.values()),
)
def test_what_another_site_can_send_steers_nothing(client: Client, headers: dict[str, str]) -> None:
    if headers.get("Origin") == "own":
        headers = {**headers, "Origin": f"http://{client.host}"}
    assert client.ask("/api/runs/recorded/steering", "POST", PAUSE, **headers).status == 403
    assert client.json("/api/runs/recorded/steering")["events"] == []  # type: ignore[index]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "no steering"),
        (b"[]", "no steering"),
        (b'{"action": "explode"}', "no steering"),
        (b'{"action": "hint", "text": 7}', "expected texts"),
        (b'{"action": "hint", "text": "%s"}' % (b"x" * 2001), "2001 characters"),
        (b'{"action": "hint", "text": "\\ud800"}', "half of a character"),
        (b'{"action": "pin", "cell": "9,9,9"}', "such as 2,1,0"),
        (b'{"action": "pin"}', "needs a cell"),
        (b'{"action": "inject", "candidate": "words"}', "block"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_steering_that_means_nothing_is_refused_with_a_reason(
    client: Client, body: bytes, words: str
) -> None:
    own = {"Content_Type": "application/json", "Origin": f"http://{client.host}"}
    answer = client.ask("/api/runs/recorded/steering", "POST", body, **own)
    assert (answer.status, words in client.body.decode()) == (400, True), client.body
    assert client.ask("/api/runs/none/steering", "POST", PAUSE, **own).status == 404
    assert client.ask("/api/runs", "POST", PAUSE, **own).status == 404
    assert client.json("/api/runs/recorded/steering")["events"] == []  # type: ignore[index]


async def test_a_port_that_is_taken_is_refused_with_the_way_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InvalidArgumentError, match=r"already in use.*choose another --port"):
            async with PageServer(Targets(), port):
                pass
