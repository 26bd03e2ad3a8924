"""The evaluator of all tests where something closes the one that it is given."""

from kernel_foundry.ports import Evaluator


class Shared:
    """An evaluator that outlives a test: judges take seconds to start."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.capabilities = evaluator.capabilities
        self.admit = evaluator.admit
        self.evaluate = evaluator.evaluate
        self.evaluate_foreign = evaluator.evaluate_foreign
        self.sweep = evaluator.sweep
        self.probe = evaluator.probe

    async def close(self) -> None:
        """Leave it open."""
