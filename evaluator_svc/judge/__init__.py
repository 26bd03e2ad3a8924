"""The judge: admits tasks, draws inputs, compares outputs, times PyTorch. Never runs a candidate."""

from evaluator_svc.judge.judge import Judge

__all__ = ["Judge"]
