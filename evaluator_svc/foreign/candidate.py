"""A candidate's entry, made ready for the parameters and the inputs of one seed."""

import ast
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from evaluator_svc.foreign.sources import raised
from evaluator_svc.messages.foreign import ForeignWorkload
from evaluator_svc.runner.faults import CandidateFaultError, fault
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.foreign import ForeignForm

_SEED = 20_260_101
"""Parameters are loaded afterwards; this only makes a constructor that draws repeatable."""


class ForeignCandidate:
    """What was loaded, and how it is called."""

    def __init__(self, form: ForeignForm, entry: Any, folder: Path, device: torch.device) -> None:
        self._form = form
        self._entry = entry
        self.folder = folder
        self._device = device

    @property
    def writes_outputs(self) -> bool:
        """Whether it is given the outputs, too."""
        return self._form is ForeignForm.FUNCTION_INTO_OUTPUTS

    def prepared(
        self,
        workload: ForeignWorkload,
        inputs: Sequence[torch.Tensor],
        state: dict[str, torch.Tensor],
        outputs: Sequence[torch.Tensor],
    ) -> tuple[Callable[[], Any], list[torch.Tensor]]:
        """Return one call on these tensors, and the tensors that its module holds.

        Args:
            workload: How it is called.
            inputs: Tensors of the call, in the order of the draw.
            state: Parameters and buffers by path.
            outputs: Where it writes, if it is given them.

        Raises:
            CandidateFaultError: it cannot be constructed, or has other parameters.
        """
        values = [_value(place, inputs) for place in ast.literal_eval(workload.form.arguments)]
        if self._form is ForeignForm.MODEL_NEW:
            model = self._model(workload, state)
            return (lambda: model(*values)), [*model.parameters(), *model.buffers()]
        if state:
            raise _other_parameters("a function, which has no parameters", sorted(state))
        entry = self._entry
        if self._form is ForeignForm.CUSTOM_KERNEL:
            data = tuple(values) if len(values) > 1 else values[0]
            return (lambda: entry(data)), []
        if self.writes_outputs:

            def call_into() -> Any:
                entry(*values, *outputs)
                return list(outputs)

            return call_into, []
        return (lambda: entry(*values)), []

    def raised(self, error: BaseException, doing: str) -> CandidateFaultError:
        """Return the fault of a call that raised."""
        return raised(error, doing, self.folder, EvaluationOutcome.LAUNCH_ERROR)

    def _model(self, workload: ForeignWorkload, state: dict[str, torch.Tensor]) -> nn.Module:
        cast = getattr(torch, workload.form.cast) if workload.form.cast else None
        torch.manual_seed(_SEED)
        try:
            model = self._entry(*ast.literal_eval(workload.form.constructor))
        except (Exception, SystemExit) as error:
            outcome = EvaluationOutcome.PLAN_ERROR
            raise raised(error, "its constructor", self.folder, outcome) from error
        if not isinstance(model, nn.Module):
            raise fault(
                EvaluationOutcome.PLAN_ERROR,
                FindingKind.PLAN,
                f"it is a {type(model).__name__} and no torch.nn.Module",
            )
        model = model.to(device=self._device, dtype=cast).train(workload.form.training)
        self._load(model.requires_grad_(requires_grad=False), workload, state)
        return model

    def _load(
        self, model: nn.Module, workload: ForeignWorkload, state: dict[str, torch.Tensor]
    ) -> None:
        wanted = {each.path for each in workload.state if each.is_parameter}
        own = {path for path, _ in model.named_parameters()}
        if own != wanted:
            raise _other_parameters(f"parameters {sorted(own)}", sorted(wanted))
        known = model.state_dict().keys()
        try:
            model.load_state_dict({p: v for p, v in state.items() if p in known}, strict=False)
        except RuntimeError as error:
            outcome = EvaluationOutcome.PLAN_ERROR
            raise raised(error, "load_state_dict", self.folder, outcome) from error


def _value(place: tuple[str, Any], inputs: Sequence[torch.Tensor]) -> Any:
    kind, item = place
    if kind == "tensor":
        return inputs[item]
    return [inputs[index] for index in item] if kind == "tensors" else item


def _other_parameters(what: str, wanted: list[str]) -> CandidateFaultError:
    return fault(
        EvaluationOutcome.PLAN_ERROR,
        FindingKind.PLAN,
        f"it is {what}; the reference has parameters {wanted}, and the judge sets their values",
        hint="name parameters as the reference does",
    )
