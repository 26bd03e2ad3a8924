"""Every rule for SPIR-V, on modules that the compiler made (`kernels/`) or might make."""

import struct
from pathlib import Path

import pytest

from evaluator_svc.inspector import inspect_spirv
from evaluator_svc.policy import RULES, ObjectFacts, RuleClass, Subject
from evaluator_svc.policy.rules import rule_of
from kernel_foundry.domain.finding import FindingKind, Severity
from kernel_foundry.domain.language import Language

KERNELS = Path(__file__).parent / "kernels"
OTHERS = Path(__file__).parents[1] / "behaviour" / "kernels"
SEVERITIES = {
    RuleClass.REJECT: (FindingKind.POLICY, Severity.ERROR),
    RuleClass.SUSPECT: (FindingKind.SUSPICION, Severity.WARNING),
    RuleClass.NOTE: (FindingKind.POLICY, Severity.INFO),
}


def module(name: str) -> bytes:
    folder = KERNELS if (KERNELS / f"{name}.spv").exists() else OTHERS
    return (folder / f"{name}.spv").read_bytes()


def formats(code: bytes) -> ObjectFacts:
    return inspect_spirv(code).numbers


def with_capability(number: int) -> bytes:
    """Return a module that asks for one more capability: some, no SYCL source leads to."""
    code = module("pointwise")
    return code[:20] + struct.pack("<2I", 2 << 16 | 17, number) + code[20:]


FOUND = {
    "object.unreadable": (b"", b"\0" * 32),
    "object.import": (module("calls_system"),),
    "object.global_state": (module("keeps_state"), module("writes_constant")),
    "object.stale_memory": (
        module("stale_local_memory"),
        module("stale_behind_entry"),
        module("stale_before_call"),
        module("stale_moved_memory"),
    ),
    "object.print": (module("prints"),),
    "object.device_launch": (with_capability(19),),
    "object.pipe": (with_capability(17),),
    "object.function_pointer": (with_capability(5603), with_capability(5604)),
    "object.assembly": (module("inline_assembly"), with_capability(5606)),
    "object.absolute_address": (
        module("absolute_address"),
        module("address_from_argument"),
        module("offset_from_null"),
    ),
    "object.forged_pointer": (module("pointer_from_memory"), module("pointer_in_memory")),
    "object.clock": (module("reads_clock"),),
    "object.constant_table": (module("large_table"),),
    "object.unordered_ticket": (
        module("unordered_ticket"),
        module("flag_without_release"),
        module("flag_without_acquire"),
        module("flag_behind_an_acquire"),
        module("flag_released_for_a_group"),
        module("flag_acquired_for_a_group"),
    ),
    "object.absent_lanes": (module("absent_lanes"),),
    "object.short_place": (module("short_place"),),
}
ELSEWHERE = {
    *("object.missing_kernel", "object.narrow_float"),
    *("object.lost_update", "object.unordered_update"),
}
"""Rules that need more than a module; they have tests of their own."""

HONEST = {
    "object.unreadable": ("mathematics", "sum_by_atomics"),
    "object.lost_update": ("honest_updates",),
    "object.unordered_ticket": ("honest_updates",),
    "object.absent_lanes": ("honest_lanes",),
    "object.short_place": ("honest_lanes",),
    "object.missing_kernel": ("honest_functors",),
    "object.import": (
        *("mathematics", "honest_half", "honest_bfloat16", "row_per_sub_group"),
        "honest_moved_array",
    ),
    "object.global_state": ("honest_table",),
    "object.stale_memory": ("honest_local_loop", "honest_local_tile", "honest_called_tile"),
    "object.print": ("honest_names",),
    "object.device_launch": ("honest_names",),
    "object.pipe": ("honest_names",),
    "object.assembly": ("honest_names",),
    "object.function_pointer": ("honest_functors",),
    "object.absolute_address": ("honest_alignment", "honest_views"),
    "object.forged_pointer": ("honest_pointer_array",),
}
"""Modules that look like what a rule catches, and are ordinary engineering."""


@pytest.mark.parametrize(
    ("rule", "code"), [(rule, code) for rule, codes in FOUND.items() for code in codes]
)
def test_what_a_rule_catches_names_the_rule(rule: str, code: bytes) -> None:
    found = {f.rule: f for f in inspect_spirv(code).findings}

    assert rule in found
    expected = SEVERITIES[rule_of(rule).rule_class]
    assert (found[rule].kind, found[rule].severity) == expected


@pytest.mark.parametrize(
    ("rule", "name"), [(rule, name) for rule, names in HONEST.items() for name in names]
)
def test_honest_look_alikes_pass(rule: str, name: str) -> None:
    assert inspect_spirv(module(name)).findings == (), rule


def test_every_refusing_rule_has_an_honest_look_alike() -> None:
    refusing = {
        rule.id
        for rule in RULES
        if rule.subject is Subject.OBJECT
        and rule.rule_class is RuleClass.REJECT
        and rule.is_for(Language.SYCL)
    }
    stored = {path.stem for path in KERNELS.glob("honest_*.spv")}

    assert refusing <= set(HONEST)
    assert stored <= {name for names in HONEST.values() for name in names}


def test_every_rule_has_a_case() -> None:
    rules = {
        rule.id for rule in RULES if rule.subject is Subject.OBJECT and rule.is_for(Language.SYCL)
    }

    assert set(FOUND) | ELSEWHERE == rules


def test_a_kernel_that_is_not_there_is_refused() -> None:
    (finding,) = inspect_spirv(module("honest_views"), ("k", "gelu")).findings

    assert finding.rule == "object.missing_kernel"


def test_narrow_formats_are_facts() -> None:
    half = ObjectFacts.of_all([formats(module("pointwise")), formats(module("honest_half"))])
    cut = formats(module("masks_mantissa"))

    assert (half.formats, half.masks_low_bits) == (("float16",), False)
    assert (cut.formats, cut.masks_low_bits) == ((), True)
    assert formats(b"nothing").formats == ()
