"""Judges a candidate by its precision audit, given the formats that its object code uses.

A float32 task is to be computed in float32. Where the object code computes in a narrower format,
errors of 16 bits or less, far above the reference's own, are refused, and the format is named;
operands split into several parts have more. Where it does not (mantissas cut by integer operations,
a coarse approximation), errors of 13 bits or less are a suspicion; in a task of float64, as float32
would do, those of 40 bits or less. A 16-bit task is to be computed
in operands of 16 bits: where sums have few terms, 8-bit ones show. Formats that no honest
kernel of the task needs (8-bit products of 16-bit numbers, a tangent of 11 bits) are a suspicion
even if no input shows an error, and so are narrow products whose errors no input can show: in whole
numbers, in means over many products. Each output is compared at the format that it rounds to.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from evaluator_svc.languages import backend_of
from evaluator_svc.messages.judge import PrecisionReply
from evaluator_svc.pipeline.correctness.unseen_terms import hidden_because, unsplit_products
from evaluator_svc.policy import ObjectFacts
from evaluator_svc.policy.finding import check_result, rule_finding
from kernel_foundry.domain.admission import Admission, Distribution
from kernel_foundry.domain.check import Check, CheckKind, CheckResult
from kernel_foundry.domain.evaluation import PrecisionAudit
from kernel_foundry.domain.finding import Figure, Finding
from kernel_foundry.domain.task import Task

LOW_BITS: Final = 13.0
"""Float16 and TF32 have 11 bits and bfloat16 8; a rounding error's root mean square is a third
of its largest, and a result that averages a few values gains another bit. Float32 has 24, split
16-bit operands 16 and more, fast exponentials 20."""

NARROW_BITS: Final = 16.0
"""Least where the object code computes in a format of fewer bits than float32's: what products of
operands split into two bfloat16 parts have where sums cancel, less two. Rounding by chance, or by
a pattern along a sum, leaves a single product of float16 or TF32 with 12 or 13 there."""

TIMED_CALLS: Final = "timed calls"
"""Label for audits of timed calls."""

_ELEMENT_BITS: Final = 17.5
"""Least on ordinary inputs in float32 where no output is made of many terms: nothing rounds there
but functions. Fast exponentials and logarithms have 20, a polynomial of degree 3 has 17."""

_MOST_BIAS: Final = 0.25
"""Units of the last place that results of 16 bits may lie beside those of eager on average. What is
cut in place of rounded is half a unit too small."""

_DOUBLE_BITS: Final = 40.0
"""Fewest bits in tasks of float64. A mean of ten million terms has 36 in float32, and 43 in float64
when added up in one chain."""

_DOUBLE_ELEMENT_BITS: Final = 48.0
"""Least there on ordinary inputs where no output is made of many terms: no functions of float64 are
fast, and exact ones have 51 bits and more."""

_UNUSUAL_DOUBLE_BITS: Final = 26.0
"""Fewest bits there on unusual inputs, where sums cancel: those of a single float32 term."""

_TF32_BITS: Final = 9.0
"""Fewest bits in tasks that allow TF32: a format with fewer is bfloat16."""

_OWN_BITS: Final = {"float16": 8.5, "bfloat16": 7.5}
"""Least on inputs of few terms in tasks that round to 16 bits. Products of float16 have 11 to 13
there, of bfloat16 8.5 to 10, whichever of the two they are added up in; operands rounded to 4 bits
leave 5.5 to 7.6, to 8-bit integers 6.8 and more."""

RATIO: Final = 8.0
"""Times the reference's own error: an ill-conditioned task excuses every candidate."""

_OWN_RATIO: Final = 4.0
"""The same in tasks of 16 bits, of eager PyTorch's error as well, which rounds after each
operator."""

_LEAST_BITS: Final = 3.0
_MEDIAN_SHARE: Final = 1 / 16
"""A wrong result is the work of a narrow format where some bits are right, and most elements are
about as wrong as others: mistakes in indices leave nothing right, or most elements exact."""

_REFUSED: Final = "numbers.precision"
_SUSPECTED: Final = "numbers.inexact"
_FLOAT32: Final = "float32"
_FLOAT64: Final = "float64"
_TF32: Final = "TF32"
_EXACT_LINES: Final = "in the rows where the reference is most exact"
_SEVERITY: Final = (CheckResult.PASSED, CheckResult.SUSPECT, CheckResult.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecisionResult:
    """The result of an audit."""

    check: Check
    findings: tuple[Finding, ...] = ()
    is_refused: bool = False
    """The candidate's result is wrong for the lack of precision."""


AssessPrecision = Callable[[PrecisionReply, str, str], PrecisionResult]
"""Judges an audit, given the name of the workload and that of its inputs."""


def assess_precision(
    audited: PrecisionReply,
    *,
    task: Task,
    admission: Admission,
    workload: str,
    facts: ObjectFacts,
    is_right: bool = True,
    inputs: str = "",
) -> PrecisionResult:
    """Return the result of an audit.

    Args:
        audited: The audit, or why there is none.
        task: The task.
        admission: Its own formats, and whether `task.tf32` means anything.
        workload: Name of the workload that was audited.
        facts: What the object code computes in.
        is_right: Whether the outputs are within the tolerance.
        inputs: Which inputs they belong to, such as "signs"; empty: ordinary ones.
    """
    asked = _Question(
        task=task,
        admission=admission,
        workload=workload,
        facts=facts,
        is_right=is_right,
        inputs=inputs,
    )
    if audited.least_exact is None:
        return _without_audit(audited, asked)
    audits = ((audited.audit, admission.rounding), (audited.wide, _FLOAT32))
    asked = replace(asked, is_by_element=audited.is_by_element)
    found = [_judged(a, own, audited.note, asked) for a, own in audits if a is not None]
    if audited.columns is not None and is_right:
        found.append(_of_columns(audited.columns, asked))
    if audited.lines is not None:
        own = _FLOAT32 if admission.is_narrow else admission.rounding
        found.append(_judged(audited.lines, own, audited.note, replace(asked, part=_EXACT_LINES)))
    if abs(audited.rounding_bias) >= _MOST_BIAS and is_right and not inputs:
        found.append(_biased(audited, asked))
    # The worst of them: a task's outputs are right when each of them is.
    worst = max(found, key=lambda judged: _SEVERITY.index(judged.check.result))
    is_passed = worst.check.result is CheckResult.PASSED
    if is_passed or admission.tolerance.matched == 1.0 or task.least_bits:
        return worst
    # Elements that may be any numbers decide on errors over all.
    note = f"{1 - admission.tolerance.matched:.2g} of the elements may differ: {worst.check.note}"
    skipped = replace(worst.check, result=CheckResult.SKIPPED, note=note)
    return PrecisionResult(check=skipped)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """What an audit is of, beside its figures."""

    task: Task
    admission: Admission
    workload: str
    facts: ObjectFacts
    is_right: bool
    inputs: str
    part: str = ""
    """Which elements are meant; empty: all."""
    is_by_element: bool = False
    """Whether no element of the outputs is made of many."""

    @property
    def where(self) -> str:
        """Workload, inputs and elements, for messages."""
        where = f"{self.workload} ({self.inputs})" if self.inputs else self.workload
        return f"{where}, {self.part}" if self.part else where


def _without_audit(audited: PrecisionReply, asked: _Question) -> PrecisionResult:
    """Return what is known where no errors are: what the object code computes in."""
    task, note = asked.task, audited.note
    if task.least_bits:
        note += f"; the {task.least_bits:g} bits that the task asks for are not checked here"
    is_known = audited.agreeing_bits > 0 or not task.compare
    formats = () if is_known else _unaudited_formats(asked)
    result = CheckResult.PASSED if audited.agreeing_bits else CheckResult.SKIPPED
    findings: tuple[Finding, ...] = ()
    if formats and asked.is_right:
        findings = (
            _suspicion(
                f"the object code computes in {' and '.join(formats)}, in a"
                f" {asked.admission.rounding} task, and no errors on {asked.where} tell how"
                f" exactly: {audited.note}",
                "Compute in the task's own format, or in split products whose parts a step adds"
                " up.",
            ),
        )
        result, note = check_result(findings[0]), findings[0].message
    check = Check(kind=CheckKind.PRECISION, result=result, workload=asked.workload, note=note)
    return PrecisionResult(check=check, findings=findings)


def _unaudited_formats(asked: _Question) -> tuple[str, ...]:
    facts, admission = asked.facts, asked.admission
    if admission.is_narrow:
        return _coarse_formats(admission, facts, is_narrow=True)
    allows_tf32 = asked.task.tf32 and backend_of(admission.device.language).has_tf32
    # What matrix units multiply, and is seen to be split, is as exact as float32.
    split = facts.matrix_formats if facts.products_of_a_step else ()
    known = (*split, *((_TF32,) if allows_tf32 else ()))
    formats = (*facts.narrow_products, *facts.rough_functions)
    return tuple(name for name in formats if name not in known)


def _judged(audit: PrecisionAudit, own: str, audit_note: str, asked: _Question) -> PrecisionResult:
    """Return the result for the errors of outputs in one format."""
    task, admission, facts = asked.task, asked.admission, asked.facts
    workload, inputs, where = asked.workload, asked.inputs, asked.where
    is_narrow = admission.is_narrow and own != _FLOAT32
    # Of unusual inputs eager PyTorch may have fewer itself.
    least = min(task.least_bits, audit.eager_bits or 0.0) if inputs else task.least_bits
    if asked.is_right and audit.effective_bits < least:
        finding = _too_few_bits(audit, where, least)
        return _result(audit, finding, workload)
    coarse = _coarse_formats(admission, facts, is_narrow=is_narrow)
    formats = coarse if is_narrow else (*facts.narrow_products, *coarse)
    least = _least_bits(asked, own, is_narrow=is_narrow, has_formats=bool(formats))
    if not _is_low(audit, least, is_narrow=is_narrow):
        unseen = _unseen(audit, own, coarse, asked) if asked.is_right and not inputs else None
        if unseen is not None:
            return _result(audit, unseen, workload)
        note = f"{inputs}: {audit_note}" if inputs and audit_note else inputs or audit_note
        return PrecisionResult(check=_check(audit, CheckResult.PASSED, workload, note))
    if not asked.is_right and not _is_of_rounding(audit):
        formats = ()
    return _result(audit, _finding(audit, where, formats, own), workload)


def _of_columns(audit: PrecisionAudit, asked: _Question) -> PrecisionResult:
    """Return the result for columns that are small beside others: a suspicion at most."""
    if asked.admission.is_narrow or not _is_low(audit, LOW_BITS, is_narrow=False):
        return PrecisionResult(check=_check(audit, CheckResult.PASSED, asked.workload))
    where = f"{asked.where}, in columns that are small beside the others"
    return _result(audit, _finding(audit, where, (), asked.admission.rounding), asked.workload)


def _biased(audited: PrecisionReply, asked: _Question) -> PrecisionResult:
    """Return a suspicion of results that were not rounded to nearest."""
    audit, bias = audited.least_exact, audited.rounding_bias
    assert audit is not None, "a bias is found beside an audit"
    side = "further from" if bias > 0 else "closer to"
    finding = _suspicion(
        f"results in {asked.admission.rounding} lie {abs(bias):.2f} units of the last place {side}"
        f" zero on average than those of eager PyTorch on {asked.where}: they are not rounded to"
        " nearest",
        "Round results to the nearest value of their format; do not cut bits off.",
        audit,
    )
    return _result(audit, finding, asked.workload)


def _result(audit: PrecisionAudit, finding: Finding, workload: str) -> PrecisionResult:
    result = check_result(finding)
    return PrecisionResult(
        check=_check(audit, result, workload, finding.message),
        findings=(finding,),
        is_refused=result is CheckResult.FAILED,
    )


def _coarse_formats(
    admission: Admission, facts: ObjectFacts, *, is_narrow: bool
) -> tuple[str, ...]:
    """Return what the object code computes in, and no honest kernel of the task has a use for."""
    if not is_narrow:
        return facts.rough_functions
    return () if admission.has_8_bit_numbers else facts.products_of_8_bits


def _least_bits(asked: _Question, own: str, *, is_narrow: bool, has_formats: bool) -> float:
    if is_narrow:
        return _OWN_BITS.get(own, 0.0) if asked.inputs == Distribution.FEW else 0.0
    is_by_element = asked.is_by_element and not asked.inputs
    if own == _FLOAT64:
        is_usual = asked.inputs in ("", TIMED_CALLS)
        least = _DOUBLE_BITS if is_usual else _UNUSUAL_DOUBLE_BITS
        return _DOUBLE_ELEMENT_BITS if is_by_element else least
    if asked.task.tf32 and backend_of(asked.admission.device.language).has_tf32:
        return _TF32_BITS
    if has_formats:
        return NARROW_BITS
    return _ELEMENT_BITS if is_by_element else LOW_BITS


def _is_low(audit: PrecisionAudit, least_bits: float, *, is_narrow: bool) -> bool:
    own = RATIO * audit.reference_rms_error
    if is_narrow:
        own = _OWN_RATIO * max(audit.reference_rms_error, audit.eager_rms_error or 0.0)
    return audit.rms_error >= own and audit.effective_bits <= least_bits


def _is_of_rounding(audit: PrecisionAudit) -> bool:
    is_spread = audit.median_error >= _MEDIAN_SHARE * audit.rms_error
    return is_spread and audit.effective_bits >= _LEAST_BITS


def _too_few_bits(audit: PrecisionAudit, workload: str, least_bits: float) -> Finding:
    eager = audit.eager_bits
    beside = "" if eager is None else f"; eager PyTorch has {eager:.1f}"
    hint = "Sum in a wider format or in another order, and split narrow products into more parts."
    if eager is not None and eager < least_bits:
        hint = "Eager PyTorch itself has fewer: lower least_bits in the task's sidecar."
    return rule_finding(
        _REFUSED,
        f"{audit.effective_bits:.1f} effective bits on {workload}, where the task asks for"
        f" {least_bits:g} (least_bits){beside}",
        hint,
        evidence=_evidence(audit),
    )


def _finding(audit: PrecisionAudit, workload: str, formats: tuple[str, ...], own: str) -> Finding:
    figures = (
        f"{audit.effective_bits:.1f} bits on {workload}, where the reference in {own} has"
        f" errors {audit.rms_error / max(audit.reference_rms_error, 2.0**-53):.0f} times smaller"
    )
    if formats:
        return rule_finding(
            _REFUSED,
            f"computes in {' and '.join(formats)} in a {own} task: {figures}",
            f"Compute in {own}, or split operands into several narrower parts that add up"
            " to all of their bits.",
            evidence=_evidence(audit),
        )
    narrow = "8-bit" if own in _OWN_BITS else "32-bit" if own == _FLOAT64 else "16-bit"
    like = f"as inexact as {narrow} arithmetic"
    if own == _FLOAT32 and audit.effective_bits > LOW_BITS:
        like = "less exact than fast functions"
    elif own == _FLOAT64 and audit.effective_bits > _DOUBLE_BITS:
        like = "less exact than functions of 64 bits"
    return _suspicion(
        f"{like}, in a {own} task: {figures}",
        "Keep all bits of operands and results; use approximations of the task's accuracy.",
        audit,
    )


def _unseen(
    audit: PrecisionAudit, own: str, coarse: tuple[str, ...], asked: _Question
) -> Finding | None:
    """Return a suspicion of what no errors show, and the object code does."""
    if coarse:
        return _suspicion(
            f"the object code computes in {' and '.join(coarse)}, in a {own} task, and"
            f" {audit.effective_bits:.1f} bits on {asked.where} do not show where",
            f"Compute all of it in {own}.",
            audit,
        )
    products = unsplit_products(asked.task, asked.admission, asked.facts)
    reason = hidden_because(asked.admission, asked.workload) if products else ""
    if not reason:
        return None
    return _suspicion(
        f"products in {' and '.join(products)}, in a {own} task, and nothing shows that they are"
        f" split: {reason} on {asked.where}",
        "Split operands into parts, and multiply the parts of one k step with each other in one"
        " unrolled block; or multiply in float32.",
        audit,
    )


def _suspicion(message: str, hint: str, audit: PrecisionAudit | None = None) -> Finding:
    evidence = _evidence(audit) if audit is not None else ()
    return rule_finding(_SUSPECTED, message, hint, evidence=evidence)


def _check(audit: PrecisionAudit, result: CheckResult, workload: str, note: str = "") -> Check:
    # The other figures are the workload's own, in `Correctness.precision`.
    return Check(
        kind=CheckKind.PRECISION,
        result=result,
        workload=workload,
        figures=(Figure(name="effective_bits", value=audit.effective_bits),),
        note=note,
    )


def _evidence(audit: PrecisionAudit) -> tuple[Figure, ...]:
    figures = {
        "effective_bits": audit.effective_bits,
        "eager_bits": audit.eager_bits,
        "rms_error": audit.rms_error,
        "reference_rms_error": audit.reference_rms_error,
        "median_error": audit.median_error,
        "p99_error": audit.p99_error,
        "max_error": audit.max_error,
    }
    return tuple(
        Figure(name=name, value=value) for name, value in figures.items() if value is not None
    )
