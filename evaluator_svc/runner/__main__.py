"""A runner: runs and times one candidate, then is thrown away.

A kernel on the CPU device is native code in this very process, so nothing that it says is trusted.
It holds no expected value and nothing of another candidate. Where bubblewrap is not in force, and
for plans with library calls, it comes from `evaluator_svc.fork_server`.
"""

from evaluator_svc.processes.locked_process import connect, serve_runner
from evaluator_svc.runner.work import answer_requests

if __name__ == "__main__":
    serve_runner(answer_requests, connect())
