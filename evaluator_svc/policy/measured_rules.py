"""The rules for times and outputs of calls.

Stages in `evaluator_svc/pipeline/timing` and `correctness` match them, and make their findings by
`rule_finding`.
"""

from typing import Final

from evaluator_svc.policy.rule import PolicyRule, RuleClass, Subject
from kernel_foundry.domain.finding import FindingKind

MEASURED_RULES: Final = (
    PolicyRule(
        id="timing.first_call",
        subject=Subject.TIMING,
        rule_class=RuleClass.SUSPECT,
        catches="a first timed call that takes longer than all others together",
        why="it may do the work that the others only hand on",
        honest_use="what a first call costs of itself: warm-up comes before the first sample",
    ),
    PolicyRule(
        id="timing.traffic_bound",
        subject=Subject.TIMING,
        rule_class=RuleClass.SUSPECT,
        catches="a call below 95 % (SYCL: 75 %) of the time to move the bytes that it needs",
        why="some of the inputs were not read, or some of the outputs not written",
        honest_use="inputs that fit into the caches, weights that were prepared smaller, masks and "
        "indices that choose what is read",
    ),
    PolicyRule(
        id="timing.arithmetic",
        subject=Subject.TIMING,
        rule_class=RuleClass.SUSPECT,
        catches="a call that is 1.25 times (SYCL: twice) as fast as the graph's operations on the "
        "fastest unit that the object code uses",
        why="some of the work was left out",
        honest_use="references that do redundant work, masks and triangles, matrix units",
    ),
    PolicyRule(
        id="numbers.precision",
        subject=Subject.NUMBERS,
        rule_class=RuleClass.REJECT,
        refusal=FindingKind.PRECISION,
        catches="fewer effective bits than the task asks for, or than its format has, where the "
        "object code computes in a narrower one",
        why="the reference's precision is part of what it computes",
        honest_use="operands split into several narrow parts, 16-bit tasks, sums in another order",
    ),
    PolicyRule(
        id="numbers.inexact",
        subject=Subject.NUMBERS,
        rule_class=RuleClass.SUSPECT,
        catches="results as inexact as a narrower format's, or narrow products whose errors no "
        "input can show",
        why="mantissas may have been cut, and a tolerance alone does not show it",
        honest_use="approximations of the task's accuracy, ill-conditioned references",
    ),
    PolicyRule(
        id="numbers.elements",
        subject=Subject.NUMBERS,
        rule_class=RuleClass.REJECT,
        refusal=FindingKind.MISMATCH,
        catches="1 output in 1024 or more that is off by more than 1/64 of its own size (1/8 in "
        "16 bits), where the reference is well conditioned",
        why="what is small beside the rest of its row could be left out, within the tolerance",
        honest_use="sums in another order, cancellation, values that underflow",
    ),
)
