"""A model's server cannot fill the memory of who asks it, however it packs its answer."""

import gzip
import zlib

import httpx
import pytest

from generator_svc.llm import answer_size

MOST = 1 << 20


@pytest.fixture(autouse=True)
def limited(monkeypatch: pytest.MonkeyPatch) -> None:
    answer_size.limit_answers()
    answer_size.limit_answers()
    monkeypatch.setattr(answer_size, "_MOST_BYTES", MOST)


def _answer(content: bytes, encoding: str) -> bytes:
    def answer(_request: httpx.Request) -> httpx.Response:
        headers = {"content-encoding": encoding} if encoding else {}
        return httpx.Response(200, stream=httpx.ByteStream(content), headers=headers)

    with httpx.Client(transport=httpx.MockTransport(answer)) as client:
        return client.get("http://server/").content


PACKED = {
    "": lambda data: data,
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "gzip, gzip": lambda data: gzip.compress(gzip.compress(data)),
}


@pytest.mark.parametrize("encoding", PACKED)
def test_an_answer_within_the_limit_is_read(encoding: str) -> None:
    data = bytes(MOST // 2)
    assert _answer(PACKED[encoding](data), encoding) == data


@pytest.mark.parametrize("encoding", PACKED)
def test_an_answer_beyond_it_ends_there(encoding: str) -> None:
    with pytest.raises(httpx.DecodingError, match="longer than"):
        _answer(PACKED[encoding](bytes(64 * MOST)), encoding)
