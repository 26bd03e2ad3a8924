"""A provider that answers with candidates, some of them late, cut, empty or not at all.

Knows what it billed, and what it would have billed for answers that never came whole.
"""

import random
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from kernel_foundry.domain.task import Task, Workload
from tests.llm_server import (
    FAULTS,
    Answer,
    ReceivedRequest,
    cut_body,
    empty,
    refusal,
    slow,
    truncated,
)

CANDIDATE_TASK: Final = Task(
    name="double",
    reference="class Model(nn.Module):\n    def forward(self, x):\n        return x * 2\n",
    workloads=(Workload(name="default"),),
)

_CANDIDATE: Final = """\
Each thread doubles one value.
```sycl
// variant {number}
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void twice(const float* x, float* out, int count) {{
  const auto i = syclext::this_work_item::get_nd_item<1>().get_global_linear_id();
  if (i < count) out[i] = x[i] * 2.f;
}}
```
```python
def launch(x, out):
    twice[cdiv(x.numel(), 64), 64](x, out, x.numel())
```
"""
_COMPLETION_TOKENS: Final = (300, 3_000)
"""Least and most that a reply is billed for."""

_GOOD_SECONDS: Final = (0.05, 0.15)
"""Least and most that a good answer takes, so that several are in flight."""

_SLOW_SECONDS: Final = 0.5

_WITHOUT_USAGE: Final = frozenset({"rate_limited", "server_error", "overloaded", "outage"})
"""Refused before anything was computed."""

_LOST: Final = frozenset({"cut_body", "garbage", "wrong_json", "dropped", "hang"})
"""Computed, but the answer never came whole."""


@dataclass(frozen=True, slots=True)
class Billed:
    """Tokens of a number of replies."""

    replies: int = 0
    tokens: int = 0

    def plus(self, tokens: int) -> "Billed":
        """Return the same with one reply more."""
        return Billed(self.replies + 1, self.tokens + tokens)


class FaultyProvider:
    """A behaviour of the server: mostly good, faulty in random ways.

    Args:
        faulty_share: Of the answers.
        seed: Of which are faulty and how; the n-th request always gets the same.
        outage: Numbers of the requests that are all refused as overloaded.
    """

    def __init__(self, faulty_share: float, *, seed: int, outage: range = range(0)) -> None:
        self._wanted_share = faulty_share
        self._seed = seed
        self._outage = outage
        self._lock = threading.Lock()
        self.answers: Counter[str] = Counter()
        """Answers by kind."""
        self.billed = Billed()
        self.lost = Billed()
        self.largest_request_tokens = 0

    def __call__(self, request: ReceivedRequest) -> Answer:
        """Answer one request."""
        rng = random.Random(f"{self._seed}/{request.number}")
        name = "good"
        if rng.random() < self._wanted_share:
            name = rng.choice(sorted(FAULTS))
        if request.number in self._outage:
            name = "outage"
        limit = request.body.get("max_completion_tokens") or request.body.get("max_tokens")
        prompt = len(request.text) // 4
        completion = min(rng.randint(*_COMPLETION_TOKENS), int(limit or _COMPLETION_TOKENS[1]))
        with self._lock:
            self.answers[name] += 1
            if name in _LOST:
                self.lost = self.lost.plus(prompt + completion)
            elif name not in _WITHOUT_USAGE:
                self.billed = self.billed.plus(prompt + completion)
            self.largest_request_tokens = max(self.largest_request_tokens, prompt + completion)
        return _with_usage(self._answer(name, request.number, rng), prompt, completion)

    @property
    def faulty_share(self) -> float:
        """Share of the answers given that were faulty, outside the outage."""
        usual = sum(self.answers.values()) - self.answers["outage"]
        return 1.0 - self.answers["good"] / max(usual, 1)

    def _answer(self, name: str, number: int, rng: random.Random) -> Answer:
        text = _CANDIDATE.format(number=number)
        own: dict[str, Callable[[], Answer]] = {
            "good": lambda: slow(text, rng.uniform(*_GOOD_SECONDS)),
            "slow": lambda: slow(text, _SLOW_SECONDS),
            "outage": FAULTS["overloaded"],
            "truncated": lambda: truncated(text[: len(text) // 2]),
            "cut_body": lambda: cut_body(text),
            "refusal": lambda: refusal(f"I will not write variant {number}"),
            "empty": empty,
        }
        return own[name]() if name in own else FAULTS[name]()


def _with_usage(answer: Answer, prompt: int, completion: int) -> Answer:
    """Return a completion that bills so many tokens; anything else as it is."""
    if answer.document is None or "usage" not in answer.document:
        return answer
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }
    return replace(answer, document={**answer.document, "usage": usage})
