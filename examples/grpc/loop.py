import os
import socket
import sys
import threading
import uuid
from pathlib import Path

import grpc

from kernel_foundry.archive.v1 import archive_service_pb2 as archive_pb2
from kernel_foundry.archive.v1 import archive_service_pb2_grpc as archive_grpc
from kernel_foundry.archive.v1 import run_pb2
from kernel_foundry.common.v1 import evaluation_pb2
from kernel_foundry.evaluator.v1 import evaluator_service_pb2 as evaluator_pb2
from kernel_foundry.evaluator.v1 import evaluator_service_pb2_grpc as evaluator_grpc
from kernel_foundry.generator.v1 import generator_service_pb2 as generator_pb2
from kernel_foundry.generator.v1 import generator_service_pb2_grpc as generator_grpc

run, path, count, *addresses = sys.argv[1:]
channels = [grpc.insecure_channel(address) for address in addresses]
evaluator = evaluator_grpc.EvaluatorServiceStub(channels[0])
archive = archive_grpc.ArchiveServiceStub(channels[1])
generator = generator_grpc.GeneratorServiceStub(channels[2])

# A proposal needs the admission: name table, operator graph, baselines, device.
task = {"name": Path(path).stem, "reference": Path(path).read_text()}
admission = evaluator.AdmitTask(evaluator_pb2.AdmitTaskRequest(task=task)).admission
if admission.refusals:
    sys.exit("; ".join(admission.refusals))
# Fitness compares with these. An evaluator may time its baselines again during a run.
yardsticks = [
    {"workload": workload.workload, "time_ns": min(b.timing.median_ns for b in workload.baselines)}
    for workload in admission.workloads
    if workload.baselines
]
models, seed, device = ["recipes"], 0, admission.device
spec = {"name": run, "task": task, "language": device.language, "device": device.id}
spec |= {"models": models, "strategy": "fitness", "seed": seed}
archive.CreateRun(archive_pb2.CreateRunRequest(spec=spec))

holder = {"token": uuid.uuid4().hex, "host": socket.gethostname(), "process_id": os.getpid()}
hold = archive_pb2.HoldRunRequest(name=run, holder=holder, budget={"evaluations": int(count)})
archive.HoldRun(hold)
ended = threading.Event()


def keep_the_lease() -> None:
    while not ended.wait(10):
        archive.HoldRun(hold)


threading.Thread(target=keep_the_lease, daemon=True).start()

spent_usd, spent_tokens, evaluated = 0.0, 0, 0
while evaluated < int(count):
    selection = archive.SelectParents(archive_pb2.SelectParentsRequest(run=run)).selection
    request = {"run": run, "task": task, "admission": admission, "selection": selection}
    request |= {"models": models, "seed": seed, "caps": {"cost_usd": 1.0}}
    request |= {"spent_usd": spent_usd, "spent_tokens": spent_tokens}
    asked = generator_pb2.ProposeCandidateRequest(request=request)
    proposal = generator.ProposeCandidate(asked).proposal
    cost_usd = sum(usage.cost_usd for usage in proposal.usage)
    spent_usd += cost_usd
    spent_tokens += sum(usage.input_tokens + usage.output_tokens for usage in proposal.usage)
    if not proposal.HasField("candidate"):
        number = selection.sequence
        archive.DropSelection(archive_pb2.DropSelectionRequest(run=run, selection=number))
        continue
    candidate = proposal.candidate
    judging = {"task": task, "device": device.id, "source": candidate.source}
    judging |= {"yardsticks": yardsticks}
    judging |= {"request_id": uuid.uuid4().hex}  # of a call that may be repeated
    answer = evaluator.EvaluateKernel(evaluator_pb2.EvaluateKernelRequest(request=judging))
    entry = {"run": run, "candidate": candidate, "evaluation": answer.evaluation}
    entry |= {"selection": selection.sequence}
    archive.AddEvaluation(
        archive_pb2.AddEvaluationRequest(**entry, request_id=uuid.uuid4().hex, cost_usd=cost_usd)
    )
    generator.ReportOutcome(generator_pb2.ReportOutcomeRequest(outcome=entry))
    evaluated += 1
    print(evaluated, evaluation_pb2.EvaluationOutcome.Name(answer.evaluation.outcome))

ended.set()
finished = run_pb2.RUN_STATE_FINISHED
archive.FinishRun(archive_pb2.FinishRunRequest(name=run, state=finished, holder=holder))
for elite in archive.ListElites(archive_pb2.ListElitesRequest(run=run, page_size=1)).elites:
    print("best", elite.fitness, elite.candidate.source.plan)
