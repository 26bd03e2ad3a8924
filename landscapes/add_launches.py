"""What each variant of a recorded landscape launches, added to its file; no kernel runs.

For landscapes that were recorded before verdicts had launches. A recipe writes each variant anew,
and its plan is bound to the sizes of the timed workload as an evaluator does it. The task is
admitted on this host's CPU, since its names and sizes are the same everywhere.

Run: python -m landscapes.add_launches FILE TASK_FILE --max-block N --shared-bytes N
     [--sub-group-size N] [--compute-units N]
"""

import argparse
import asyncio
import dataclasses
import os
import sys
from pathlib import Path

from evaluator_svc.evaluator import LocalEvaluator
from evaluator_svc.messages.locked import WorkloadNames
from evaluator_svc.pipeline.build.built_candidate import launch_facts
from evaluator_svc.processes.binding import bind_workload, describe
from evaluator_svc.settings import EvaluatorSettings
from generator_svc.recipes.genome import Genome
from generator_svc.recipes.graph_reader import read_graph
from generator_svc.recipes.recipes import choose_recipe
from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.language import Language
from kernel_foundry.plan import NotMeant, parse
from kernel_foundry.sdk.task_file import read_task
from landscapes.landscape import Landscape, Variant
from landscapes.landscape_file import read_landscape, write_landscape


class LaunchBinder:
    """Binds the variants of a landscape.

    Args:
        landscape: Recorded from a built-in recipe.
        admission: Of its task; the device is the one that it was recorded on.
    """

    def __init__(self, landscape: Landscape, admission: Admission) -> None:
        self._device = admission.device
        self._language = Language(landscape.language)
        self._genes = tuple(parameter.name for parameter in landscape.parameters)
        self._recipe = choose_recipe(
            read_graph(admission), language=self._language, device=self._device
        )
        (timed,) = [w for w in admission.workloads if not w.held_out]
        self._names = WorkloadNames(
            workload=timed.workload, tensors=timed.tensors, scalars=timed.scalars
        )

    def with_launches(self, variant: Variant) -> Variant:
        """Return a variant with its launches; None of them where its plan does not fit."""
        values = map(str, variant.values)
        genes = tuple(zip(self._genes, values, strict=True))
        genome = Genome(family=self._recipe.family, genes=genes)
        code, plan = self._recipe.write(self._recipe.normalised(genome))
        source = KernelSource(language=self._language, device_code=code, plan=plan)
        try:
            sequence = bind_workload(
                parse(plan),
                self._names,
                source=source,
                configuration=(),
                device=self._device,
                library_ops=(),
            )
        except NotMeant:
            return variant
        launches = launch_facts(describe(self._names.workload, sequence))
        return dataclasses.replace(variant, launches=launches)


async def _admission(task_file: Path) -> Admission:
    evaluator = LocalEvaluator(EvaluatorSettings.from_environment(os.environ))
    try:
        return await evaluator.admit(read_task(task_file), "sycl:0")
    finally:
        await evaluator.close()


def main() -> None:
    """Read the command line, and write the file anew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("landscape", type=Path)
    parser.add_argument("task", type=Path, help="what it was recorded from")
    parser.add_argument("--max-block", type=int, required=True, help="of the recorded device")
    parser.add_argument("--shared-bytes", type=int, required=True, help="of a work-group there")
    parser.add_argument("--sub-group-size", type=int, default=32)
    parser.add_argument("--compute-units", type=int, default=132)
    options = parser.parse_args()
    landscape = read_landscape(options.landscape)
    admission = asyncio.run(_admission(options.task))
    device = dataclasses.replace(
        admission.device,
        max_block=options.max_block,
        shared_bytes=options.shared_bytes,
        sub_group_size=options.sub_group_size,
        compute_units=options.compute_units,
    )
    binder = LaunchBinder(landscape, dataclasses.replace(admission, device=device))
    variants = tuple(map(binder.with_launches, landscape.variants))
    write_landscape(options.landscape, dataclasses.replace(landscape, variants=variants))
    known = sum(variant.launches is not None for variant in variants)
    sys.stdout.write(f"{options.landscape}: launches of {known} of {len(variants)} variants\n")


if __name__ == "__main__":
    main()
