"""An inspector: reads the object code of one candidate, then is thrown away.

It is no builder: a compiler that hostile text took over cannot speak for what it made.
"""

from evaluator_svc.inspector.work import answer_requests
from evaluator_svc.processes.locked_process import connect, serve_inspector

if __name__ == "__main__":
    serve_inspector(answer_requests, connect())
