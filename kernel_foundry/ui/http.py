"""As much of HTTP/1.1 as a page on the same machine needs: one request and one answer each.

Header fields are read by the standard library; the rest is a request line and a body of known
length. Its server classes are for threads, and the archive's streams are asynchronous.
"""

import asyncio
import http.client
import io
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

LARGEST_HEAD: Final = 16 * 1024
"""Bytes of a request line and its header fields."""

LARGEST_BODY: Final = 2 << 20
"""Bytes of a request's body: a candidate and what is around it."""

REQUEST_S: Final = 30.0
"""How long a client may take to send a head, and then a body."""


class BadRequestError(Exception):
    """What came is no request that is answered here."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request."""

    method: str
    path: tuple[str, ...]
    """Its segments, decoded: ("api", "runs"); empty for the root."""
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """By lower-case name; of a name that comes twice both, with a comma."""
    body: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """One answer: a body, or a stream that ends when the client leaves or it is exhausted."""

    status: HTTPStatus = HTTPStatus.OK
    content_type: str = "text/plain; charset=utf-8"
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    stream: AsyncGenerator[bytes, None] | None = None


async def read_head(reader: asyncio.StreamReader) -> Request | None:
    """Return a client's request without its body; None when it left without one.

    Raises:
        BadRequestError: it is malformed, too large, or takes too long.
    """
    try:
        async with asyncio.timeout(REQUEST_S):
            head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    except asyncio.LimitOverrunError as error:
        raise BadRequestError(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE) from error
    except TimeoutError as error:
        raise BadRequestError(HTTPStatus.REQUEST_TIMEOUT) from error
    line, _, fields = head.partition(b"\r\n")
    headers = _headers(fields)
    _body_length(headers)  # a malformed or too large body is refused here
    return _request(line, headers)


async def read_body(reader: asyncio.StreamReader, request: Request) -> Request | None:
    """Return the request with its body; None when the client left before its end.

    Raises:
        BadRequestError: as `read_head`.
    """
    try:
        async with asyncio.timeout(REQUEST_S):
            body = await reader.readexactly(_body_length(request.headers))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    except TimeoutError as error:
        raise BadRequestError(HTTPStatus.REQUEST_TIMEOUT) from error
    return replace(request, body=body)


def head_of(response: Response, headers: Mapping[str, str]) -> bytes:
    """Return the status line and header fields of an answer."""
    fields = {"Content-Type": response.content_type, **headers, **response.headers}
    if response.stream is None:
        fields["Content-Length"] = str(len(response.body))
    lines = [f"HTTP/1.1 {response.status.value} {response.status.phrase}"]
    lines += [f"{name}: {value}" for name, value in fields.items()]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1")


def _headers(fields: bytes) -> dict[str, str]:
    try:
        parsed = http.client.parse_headers(io.BytesIO(fields))
    except http.client.HTTPException as error:
        raise BadRequestError(HTTPStatus.BAD_REQUEST) from error
    headers: dict[str, str] = {}
    for name, value in parsed.items():
        key = name.lower()
        headers[key] = f"{headers[key]}, {value}" if key in headers else value
    return headers


def _body_length(headers: Mapping[str, str]) -> int:
    length = headers.get("content-length", "0")
    if "transfer-encoding" in headers or not (length.isascii() and length.isdigit()):
        raise BadRequestError(HTTPStatus.BAD_REQUEST)
    if len(length) > 9 or int(length) > LARGEST_BODY:
        raise BadRequestError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    return int(length)


def _request(line: bytes, headers: Mapping[str, str]) -> Request:
    try:
        method, target, version = line.decode("ascii").split(" ")
        parts = urlsplit(target)
        query = parse_qs(parts.query, keep_blank_values=True, max_num_fields=16)
    except ValueError as error:
        raise BadRequestError(HTTPStatus.BAD_REQUEST) from error
    if not version.startswith("HTTP/1.") or not target.startswith("/") or parts.netloc:
        raise BadRequestError(HTTPStatus.BAD_REQUEST)
    segments = parts.path.split("/")[1:]
    return Request(
        method=method,
        path=() if segments == [""] else tuple(unquote(segment) for segment in segments),
        query={name: values[-1] for name, values in query.items()},
        headers=headers,
    )
