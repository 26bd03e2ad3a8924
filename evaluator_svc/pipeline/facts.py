"""Lines of evidence about a verdict: device, software, limits, isolation."""

from evaluator_svc.devices.site import DeviceSite
from evaluator_svc.languages import backend_of
from evaluator_svc.messages.draw import SEED_COUNT
from evaluator_svc.messages.judge import JudgeFacts
from evaluator_svc.pipeline.evaluation_context import JudgedRequest
from evaluator_svc.pipeline.own_version import own_version
from kernel_foundry.domain.evaluation import Fact


def verdict_facts(site: DeviceSite, request: JudgedRequest, judge: JudgeFacts) -> tuple[Fact, ...]:
    """Return the facts that a verdict depends on; `sdk.verification.compare` knows their names."""
    limits, backend = request.limits, backend_of(site.spec.language)
    origin = "given by the caller" if request.seeds else "fresh and secret"
    fresh = request.fresh_baselines
    facts = {
        "device": site.spec.model_text,
        "compiler": site.compiler_version,
        "Kernel Foundry": own_version(),
        "threads": f"{site.settings.thread_count}, device and torch alike",
        "seeds": f"{SEED_COUNT} for each workload, {origin}",
        "clock": backend.clock,
        "limits": f"build {limits.build_seconds:g} s, a run {limits.run_seconds:g} s, timing of a "
        f"workload {limits.timing_seconds:g} s",
        "baselines": "in alternation with the candidate"
        if fresh
        else "of the admission, measured again where they drifted",
    }
    if backend.has_tf32:
        tf32 = "on in products and convolutions: the task allows it"
        facts["TF32"] = tf32 if request.task.tf32 else "off"
    facts["isolation"] = ", ".join(site.isolation.mechanisms) or "none"
    facts["judge process"] = str(judge.process_id)
    return (*(Fact(name=n, value=v) for n, v in facts.items()), *judge.facts)
