"""Which message mirrors which domain dataclass: the contract's types at one glance.

The converter does not need it; the tests walk it to hold protos and domain together.
"""

from collections.abc import Mapping
from types import MappingProxyType

from google.protobuf.message import Message

from kernel_foundry.archive.v1 import (
    gradient_pb2,
    run_event_pb2,
    run_pb2,
    stats_pb2,
    told_evaluation_pb2,
)
from kernel_foundry.common.v1 import (
    admission_pb2,
    candidate_pb2,
    device_pb2,
    evaluation_pb2,
    finding_pb2,
    measures_pb2,
    selection_pb2,
    task_pb2,
)
from kernel_foundry.domain import (
    account,
    admission,
    archive,
    candidate,
    device,
    evaluation,
    exchange,
    finding,
    gradient,
    lesson,
    measures,
    request,
    sweep,
    task,
)
from kernel_foundry.evaluator.v1 import capabilities_pb2, evaluation_request_pb2, sweep_pb2
from kernel_foundry.generator.v1 import account_pb2, exchange_pb2, lesson_pb2, proposal_pb2

MESSAGES: Mapping[type, type[Message]] = MappingProxyType(
    {
        account.ModelSpend: account_pb2.ModelSpend,
        account.RepairCount: account_pb2.RepairCount,
        account.RunAccount: account_pb2.RunAccount,
        admission.Admission: admission_pb2.Admission,
        admission.GraphKeyword: admission_pb2.GraphKeyword,
        admission.GraphNode: admission_pb2.GraphNode,
        admission.NamedScalar: admission_pb2.NamedScalar,
        admission.NamedTensor: admission_pb2.NamedTensor,
        admission.WorkloadAdmission: admission_pb2.WorkloadAdmission,
        archive.AddResult: told_evaluation_pb2.AddResult,
        archive.ArchiveStats: stats_pb2.ArchiveStats,
        archive.Elite: selection_pb2.Elite,
        archive.IslandStats: stats_pb2.IslandStats,
        archive.OutcomeCount: stats_pb2.OutcomeCount,
        archive.Run: run_pb2.Run,
        archive.RunEvent: run_event_pb2.RunEvent,
        archive.RunSpec: run_pb2.RunSpec,
        archive.Selection: selection_pb2.Selection,
        archive.ToldEvaluation: told_evaluation_pb2.ToldEvaluation,
        candidate.Candidate: candidate_pb2.Candidate,
        candidate.KernelSource: candidate_pb2.KernelSource,
        device.Availability: capabilities_pb2.Availability,
        device.Capabilities: capabilities_pb2.Capabilities,
        device.DeviceSpec: device_pb2.DeviceSpec,
        device.IsolationReport: capabilities_pb2.IsolationReport,
        device.Peaks: device_pb2.Peaks,
        device.UnitLimits: device_pb2.UnitLimits,
        evaluation.Baseline: evaluation_pb2.Baseline,
        evaluation.ClockBlock: evaluation_pb2.ClockBlock,
        evaluation.CompileReport: evaluation_pb2.CompileReport,
        evaluation.Correctness: evaluation_pb2.Correctness,
        evaluation.Evaluation: evaluation_pb2.Evaluation,
        evaluation.Fact: evaluation_pb2.Fact,
        evaluation.KernelResources: evaluation_pb2.KernelResources,
        evaluation.Listing: evaluation_pb2.Listing,
        evaluation.Setting: evaluation_pb2.Setting,
        evaluation.StageTime: evaluation_pb2.StageTime,
        evaluation.Timing: evaluation_pb2.Timing,
        evaluation.WorkloadResult: evaluation_pb2.WorkloadResult,
        exchange.ChatMessage: exchange_pb2.ChatMessage,
        exchange.Exchange: exchange_pb2.Exchange,
        finding.Evidence: finding_pb2.Evidence,
        finding.Finding: finding_pb2.Finding,
        gradient.GradientCell: gradient_pb2.GradientCell,
        gradient.Transition: gradient_pb2.Transition,
        lesson.AddedLesson: lesson_pb2.AddedLesson,
        lesson.Lesson: lesson_pb2.Lesson,
        lesson.LessonHit: lesson_pb2.LessonHit,
        lesson.LessonQuery: lesson_pb2.LessonQuery,
        measures.Measures: measures_pb2.Measures,
        request.BudgetCaps: proposal_pb2.BudgetCaps,
        request.EvaluationLimits: evaluation_request_pb2.EvaluationLimits,
        request.EvaluationRequest: evaluation_request_pb2.EvaluationRequest,
        request.Proposal: proposal_pb2.Proposal,
        request.ProposalOutcome: proposal_pb2.ProposalOutcome,
        request.ProposalRequest: proposal_pb2.ProposalRequest,
        request.TokenUsage: proposal_pb2.TokenUsage,
        sweep.Configuration: sweep_pb2.Configuration,
        sweep.ConfigurationResult: sweep_pb2.ConfigurationResult,
        sweep.ConfigurationTimes: sweep_pb2.ConfigurationTimes,
        sweep.ConfigurationTiming: sweep_pb2.ConfigurationTiming,
        sweep.SweepRequest: sweep_pb2.SweepRequest,
        task.Size: task_pb2.Size,
        task.Task: task_pb2.Task,
        task.Tolerance: task_pb2.Tolerance,
        task.Workload: task_pb2.Workload,
    }
)
