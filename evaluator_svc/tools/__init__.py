"""NVIDIA's own tools on a candidate that is run once more, outside its evaluation.

`sanitize` finds illegal accesses and races with their lines, `profile` measures what kernels do
with the device. Both run a command, which `rerun_command` gives for a folder that
`rerun_folder.write` has filled. A tool that is absent or fails is a note, never a failure. The
candidate's device code runs without a sandbox here, as the tools need; its plan is data, its
library calls are those of a list, and it has no host code.
"""

from evaluator_svc.tools.profiler import ProfilerResult, profile
from evaluator_svc.tools.rerun_folder import rerun_command
from evaluator_svc.tools.sanitizer import SanitizerTool, inspect, sanitize

__all__ = ["ProfilerResult", "SanitizerTool", "inspect", "profile", "rerun_command", "sanitize"]
