"""The policy: rules for candidates as data, and the code that matches them in source and plan.

On a CPU device a kernel is native code in the process that launches it. So calls of host functions
are refused in the object code, whatever the source looks like; the rules for source keep files out
of the compiler. On a GPU a kernel cannot reach the host, but its module could keep state from call
to call, which is refused. The policy is not a sandbox: a kernel may still write through a forged
pointer, and so it runs in a locked process of its own.
"""

from evaluator_svc.policy.checks import policy_checks
from evaluator_svc.policy.number_formats import ObjectFacts, narrow_findings
from evaluator_svc.policy.rule import PolicyRule, RuleClass, Subject
from evaluator_svc.policy.rules import RULES

__all__ = [
    "RULES",
    "ObjectFacts",
    "PolicyRule",
    "RuleClass",
    "Subject",
    "narrow_findings",
    "policy_checks",
]
