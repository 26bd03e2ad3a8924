"""Experts: the roles that write candidates, each with a system prompt and a retrieval filter."""

from generator_svc.experts.expert import EXPERTS, GENERAL, Expert, expert_of
from generator_svc.experts.retrieval import lesson_query

__all__ = ["EXPERTS", "GENERAL", "Expert", "expert_of", "lesson_query"]
