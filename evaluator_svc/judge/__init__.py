"""The judge: admits tasks, draws inputs, compares outputs, times PyTorch; runs no candidate."""

from evaluator_svc.judge.judge import Judge

__all__ = ["Judge"]
