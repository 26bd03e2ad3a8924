"""The trial of an exported file as a program of its own, where it is not forked from a template."""

from evaluator_svc.exported_form.process import serve
from evaluator_svc.processes.locked_process import connect
from evaluator_svc.sandbox.limits import end_with_parent

if __name__ == "__main__":
    end_with_parent()
    serve(connect())
