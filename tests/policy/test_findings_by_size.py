"""Notes about sizes are for tasks whose tensors come near them."""

from evaluator_svc.policy.finding import rule_finding
from evaluator_svc.policy.findings_by_size import LEAST_FOR_SHORT_PLACES, SHORT_PLACE, fitting_sizes


def test_places_in_32_bits_are_told_where_tensors_are_large() -> None:
    short, other = rule_finding(SHORT_PLACE, "short", ""), rule_finding("object.sleep", "", "")
    assert fitting_sizes([short, other], LEAST_FOR_SHORT_PLACES) == (short, other)
    assert fitting_sizes([short, other], LEAST_FOR_SHORT_PLACES - 1) == (other,)
