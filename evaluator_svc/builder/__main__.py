"""A builder: reads one candidate's text and builds it, then is thrown away.

A candidate's text is first parsed, and only compiled, here. A sweep asks for one configuration
after the other of the same candidate. Buffers and launches are the runner's
(`evaluator_svc/runner`).
"""

from evaluator_svc.builder.work import build
from evaluator_svc.processes.locked_process import connect, serve_builder

if __name__ == "__main__":
    serve_builder(build, connect())
