"""Finds what is wrong or slow in a candidate: typed findings with numbers and a hint.

`compile_findings` reads a compiler's log, `performance_findings` compares times with the device's
measured limits, `launch_findings` says why a launch did not fit. What a wrong result looks like is
the judge's to say.
"""

from evaluator_svc.diagnosis.compiler_log import compile_findings
from evaluator_svc.diagnosis.performance import performance_findings
from evaluator_svc.diagnosis.resources import launch_findings

__all__ = ["compile_findings", "launch_findings", "performance_findings"]
