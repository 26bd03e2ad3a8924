"""Experts as data: `experts.yaml` beside this file says who there is.

Islands are the archive's; which model an expert asks is decided in `model_choice`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from types import MappingProxyType
from typing import Any, Final

import yaml

from kernel_foundry.domain.finding import FindingKind

GENERAL: Final = "general"
"""Role of the expert for islands that have none of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expert:
    """One who writes candidates, with an eye for one thing."""

    role: str
    """Name of the island that it writes for."""
    title: str
    """What it is an expert in."""
    system: str
    """Template of its part of a prompt."""
    finding_kinds: tuple[FindingKind, ...]
    """What it asks lessons for when the parent passed, the most telling first."""


def _read() -> Mapping[str, Expert]:
    text = resources.files(__package__).joinpath("experts.yaml").read_text("utf-8")
    experts = (_expert(entry) for entry in yaml.safe_load(text))
    return MappingProxyType({expert.role: expert for expert in experts})


def _expert(entry: dict[str, Any]) -> Expert:
    kinds = tuple(FindingKind(kind) for kind in entry.pop("finding_kinds"))
    return Expert(**entry, finding_kinds=kinds)


EXPERTS: Final = _read()
"""Every expert by its role."""


def expert_of(island: str) -> Expert:
    """Return the expert who writes for `island`; the general one for a role nobody has."""
    return EXPERTS.get(island, EXPERTS[GENERAL])
