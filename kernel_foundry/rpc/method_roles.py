"""The role that each method needs; one that is not listed needs the highest."""

from typing import Final

from kernel_foundry.rpc.tokens import Role

_READ: Final = frozenset(
    {
        "CheckModels", "GetCapabilities", "GetGradient", "GetRun", "GetRunAccount", "GetStats",
        "ListApplications", "ListElites", "ListEvaluations", "ListExchanges", "ListLessons",
        "ListModelLimits", "ListModels", "ListRuns", "ListSteering", "ListTransitions",
        "SearchLessons", "WatchRun",
    }
)  # fmt: skip
# Services see to it that users change their own runs alone (`kernel_foundry.caller`).
_RUN: Final = frozenset(
    {
        "AddEvaluation", "AddLesson", "AdmitTask", "CreateRun", "DeleteRun", "DropSelection",
        "EvaluateForeign", "EvaluateKernel", "FinishRun", "ForgetRun", "HoldRun", "ProbeHost",
        "ProposeCandidate", "RenameRun", "ReportOutcome", "SelectParents", "SteerRun",
        "SweepKernel",
    }
)  # fmt: skip
_OPEN: Final = ("/grpc.health.v1.Health/",)
_REFLECTION: Final = "/grpc.reflection."


def needed_role(method: str) -> Role | None:
    """Return the role for a method such as "/package.Service/Method"; None: anybody may."""
    if method.startswith(_OPEN):
        return None
    name = method.rpartition("/")[2]
    if name in _READ or method.startswith(_REFLECTION):
        return Role.READ
    return Role.RUN if name in _RUN else Role.ADMIN
