"""Serve by hand: `python -m tests.llm_server --reply examples/softmax.sycl.md --faulty 0.3`.

Then, elsewhere:
OPENAI_BASE_URL=http://127.0.0.1:8321/v1 OPENAI_API_KEY=none kfoundry optimize
examples/softmax.py --model openai/any
"""

import argparse
import random
import re
import time
from pathlib import Path

from tests.llm_server import FAULTS, Answer, Behaviour, LlmServer, ReceivedRequest, good


def behaviour(replies: list[str], faults: list[str], faulty_share: float, seed: int) -> Behaviour:
    """Return a behaviour that gives `replies` in turn and a random fault now and then.

    The first fenced block of each reply gets a comment with the request's number, so that no two
    candidates are the same.
    """

    def answer(request: ReceivedRequest) -> Answer:
        rng = random.Random(f"{seed}/{request.number}")
        name = rng.choice(faults) if rng.random() < faulty_share else "good"
        reply = replies[(request.number - 1) % len(replies)]
        text = re.sub(
            r"^(```\w+\n)", rf"\g<1>// reply {request.number}\n", reply, count=1, flags=re.M
        )
        key = f"{request.key[:3]}…" if request.key else "no key"
        print(f"{request.number} {request.model} ({len(request.text)} characters, {key}): {name}")
        return FAULTS[name]() if name != "good" else good(text)

    return answer


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(prog="tests.llm_server", description=__doc__)
    parser.add_argument("--port", type=int, default=8321)
    parser.add_argument(
        "--reply", type=Path, action="append", default=[], help="file with a reply; repeatable"
    )
    parser.add_argument("--faulty", type=float, default=0.0, help="share of faulty answers")
    parser.add_argument(
        "--fault", choices=sorted(FAULTS), action="append", help="only these; repeatable"
    )
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    replies = [path.read_text() for path in options.reply] or ["hello"]
    faults = options.fault or sorted(FAULTS)
    with LlmServer(
        behaviour(replies, faults, options.faulty, options.seed), port=options.port
    ) as server:
        print(f"OPENAI_BASE_URL={server.base_url}", flush=True)
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
