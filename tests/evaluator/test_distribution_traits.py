"""What holds of each distribution is said of all of them."""

from evaluator_svc.messages.distribution_traits import TRAITS, Trait, has, with_trait
from kernel_foundry.domain.admission import Distribution


def test_every_distribution_has_its_row_in_order() -> None:
    assert list(TRAITS) == list(Distribution)


def test_distributions_are_found_by_what_holds_of_them() -> None:
    assert with_trait(Trait.REPORTED) == (Distribution.DENORMAL, Distribution.NON_FINITE)
    assert has(Distribution.OFFSET, Trait.CANCELS)
    assert not has(Distribution.ALIKE, Trait.CANCELS)
