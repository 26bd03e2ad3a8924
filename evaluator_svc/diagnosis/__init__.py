"""What is the matter with a candidate, as typed findings with numbers and a hint.

`compile_findings` reads a compiler's log, `performance_findings` compares times with the device's
measured limits. What a wrong result looks like is the judge's to say.
"""

from evaluator_svc.diagnosis.compiler_log import compile_findings
from evaluator_svc.diagnosis.performance import performance_findings

__all__ = ["compile_findings", "performance_findings"]
