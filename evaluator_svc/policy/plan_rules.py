"""The rules for launch plans beside those of their language. `plan.py` matches them."""

from typing import Final

from evaluator_svc.policy.rule import PolicyRule, RuleClass, Subject

PLAN_RULES: Final = (
    PolicyRule(
        id="plan.dunder",
        subject=Subject.PLAN,
        rule_class=RuleClass.REJECT,
        catches="names and strings such as __class__ and __import__",
        why="they are Python's own ways around an interpreter; ours has none of them",
        honest_use="_rows, rows_, __shared (an underscore on one side)",
    ),
    PolicyRule(
        id="plan.hidden_text",
        subject=Subject.PLAN,
        rule_class=RuleClass.REJECT,
        catches="control characters, and characters that turn the direction of writing or have no "
        "width",
        why="people would read another plan than the interpreter",
        honest_use="docstrings and comments in any script",
    ),
    PolicyRule(
        id="plan.address",
        subject=Subject.PLAN,
        rule_class=RuleClass.SUSPECT,
        catches="a whole number between 2^40 and 2^48",
        why="that is where a process's memory lies: a kernel may take it for a pointer",
        honest_use="sizes, INT_MAX, 2**31, multipliers of hashes with 64 bits",
    ),
    PolicyRule(
        id="plan.literal_table",
        subject=Subject.PLAN,
        rule_class=RuleClass.SUSPECT,
        catches="512 numbers or more beside TUNE",
        why="a table of that size may hold answers instead of a way to them",
        honest_use="TUNE with many values, a few constants, tuples of strides",
    ),
    PolicyRule(
        id="plan.exact_shape",
        subject=Subject.PLAN,
        rule_class=RuleClass.NOTE,
        catches="a comparison for equality with a number of 1024 or more",
        why="a path for the measured shape alone; held-out shapes are checked for the others",
        honest_use="n % 4 == 0, rows <= 1024, cols == 64, VEC == 4, require(cols % 1024 == 0)",
    ),
    PolicyRule(
        id="plan.addressed_reader",
        subject=Subject.PLAN,
        rule_class=RuleClass.NOTE,
        catches="comments and docstrings that speak to a judge, a reviewer or a model",
        why="nothing here reads them; people who read a report should know",
        honest_use="docstrings on the plan",
    ),
)
