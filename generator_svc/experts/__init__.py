"""Experts: the roles that write candidates, each with a system prompt and a retrieval filter."""

from generator_svc.experts.expert import EXPERTS, GENERAL, Expert, expert_of

__all__ = ["EXPERTS", "GENERAL", "Expert", "expert_of"]
