"""Plain data: what the store, the pipes between processes and `--json` share."""

import math

from evaluator_svc.messages.locked import DoneReply
from kernel_foundry.domain.evaluation import StopReason, Timing
from kernel_foundry.domain.plain import from_json, to_json

TIMING = Timing(
    samples_ns=(1.0, 2.5, math.inf),
    median_ns=2.5,
    ci95_ns=(1.0, 4.0),
    stop_reason=StopReason.CONVERGED,
    is_cold=True,
    warmup_count=1,
    discarded_count=0,
)


def test_round_trip_keeps_values_and_what_has_no_fields() -> None:
    assert from_json(Timing, to_json(TIMING)) == TIMING
    assert from_json(DoneReply, to_json(DoneReply())) == DoneReply()
