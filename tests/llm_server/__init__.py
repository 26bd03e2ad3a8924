"""An OpenAI-compatible server of the test suite's own: scriptable, faulty on demand.

Real sockets, real HTTP and real JSON: what a client meets here is what it meets at a provider.
The caller decides what a reply says.
"""

from tests.llm_server.answers import (
    FAULTS,
    Answer,
    cut_body,
    dropped,
    empty,
    error,
    filtered,
    garbage,
    good,
    hang,
    quota,
    rate_limited,
    refusal,
    slow,
    truncated,
    wrong_json,
)
from tests.llm_server.server import Behaviour, LlmServer, ReceivedRequest, scripted

__all__ = [
    "FAULTS",
    "Answer",
    "Behaviour",
    "LlmServer",
    "ReceivedRequest",
    "cut_body",
    "dropped",
    "empty",
    "error",
    "filtered",
    "garbage",
    "good",
    "hang",
    "quota",
    "rate_limited",
    "refusal",
    "scripted",
    "slow",
    "truncated",
    "wrong_json",
]
