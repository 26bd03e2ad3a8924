"""Tries the backward pass of an exported file: its gradients beside its reference's."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from evaluator_svc.exported_form.samples import host_samples, interval
from evaluator_svc.exported_form.trial import Trial, error_share, failed
from kernel_foundry.exported_form import FormResult, FormWorkload


class BackwardTrial(Trial):
    """The backward pass of one exported file on trial."""

    def compared(self, workload: FormWorkload) -> FormResult:
        """Return how the file's gradients are on a workload, by autograd as in a training step."""
        _, reference, model, inputs, _ = case = self.case(workload)
        names = (*self.file.INPUTS, *self.file.WORKLOADS[0]["weights"])
        wanted = [names.index(of) for _, of in self.file.GRADIENTS]
        leaves = [t.requires_grad_(i in wanted) for i, t in enumerate(inputs)]
        values = self.file.filled(self.file.flat(case.values)[1], leaves)
        graphs = []
        for module in (model, reference):
            tensors = [*leaves, *self.file.weights_of(module)]
            for place, tensor in enumerate(tensors):
                if tensor.is_floating_point():
                    tensor.requires_grad_(place in wanted)
            found = self.file.results_of(module(*values))
            graphs.append((found, [tensors[place] for place in wanted]))
        grads = [torch.randn_like(result) for result in graphs[0][0]]
        before = self.file.stats()["backward"]
        gradients, expected = (_gradients(*graph, grads) for graph in graphs)
        after = self.file.stats()["backward"]
        if after["kernel"] != before["kernel"] + 1:
            return failed(workload, f"the reference's backward pass ran: {after['last_reason']}")
        share = error_share(
            gradients,
            expected,
            workload.tolerance,
            is_scaled=self.request.is_backward_scaled,
            memory=self.memory,
        )
        if not share <= 1.0:
            text = f"gradients are wrong by {share:.3g} times what the tolerance allows"
            return failed(workload, text)
        if not workload.is_timed:
            return FormResult(name=workload.name, error_share=share)
        own, plain = (partial(_gradients, *graph, grads) for graph in graphs)
        return self._times(workload, share, model, [t.detach() for t in inputs], grads, own, plain)

    def _times(
        self,
        workload: FormWorkload,
        share: float,
        model: Any,
        inputs: list[torch.Tensor],
        grads: list[torch.Tensor],
        own: Callable[[], object],
        plain: Callable[[], object],
    ) -> FormResult:
        is_gpu = self.device.type == "cuda"
        host = host_samples(own) if is_gpu else self.idle_samples(own)
        calls, eager = self.samples(own), self.samples(plain)
        weights = [weight.detach() for weight in self.file.weights_of(model)]
        tensors = [*inputs, *weights, *grads]
        call = self.file.bound_backward(self.file.kind_of(model._kf.kind), tensors)
        results = call.new_results()
        # Last: these samples write to the inputs, which ends autograd's graphs of them.
        with torch.no_grad():
            run = partial(call.run, tensors, results)
            kernels = self.kernel_samples(run, [*inputs, *grads])
        lower, median, upper = interval(kernels)
        return FormResult(
            name=workload.name,
            error_share=share,
            kernels_ns=(lower, median, upper),
            call_ns=interval(calls)[1],
            host_ns=interval(host)[1],
            eager_ns=interval(eager)[1],
        )


def _gradients(
    results: list[torch.Tensor], by: list[torch.Tensor], grads: list[torch.Tensor]
) -> list[torch.Tensor]:
    return list(torch.autograd.grad(results, by, grads, retain_graph=True, materialize_grads=True))
