"""The judge's process as a program of its own, where it is not forked from a template."""

from evaluator_svc.judge.work import serve_judge
from evaluator_svc.processes.locked_process import connect
from evaluator_svc.sandbox.limits import end_with_parent

if __name__ == "__main__":
    end_with_parent()
    serve_judge(connect())
