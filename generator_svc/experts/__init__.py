"""Experts: the roles that write candidates, each with its part of the prompt and its lessons."""

from generator_svc.experts.expert import EXPERTS, GENERAL, Expert, expert_of

__all__ = ["EXPERTS", "GENERAL", "Expert", "expert_of"]
