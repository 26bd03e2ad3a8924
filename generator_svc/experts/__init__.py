"""Experts: the roles that write candidates; each has a part of the prompt and a filter of lessons."""

from generator_svc.experts.expert import EXPERTS, GENERAL, Expert, expert_of

__all__ = ["EXPERTS", "GENERAL", "Expert", "expert_of"]
