import sys
from pathlib import Path

import grpc

from kernel_foundry.evaluator.v1 import evaluator_service_pb2 as pb2
from kernel_foundry.evaluator.v1 import evaluator_service_pb2_grpc as pb2_grpc

address, task, candidate = sys.argv[1:4]
request = {"task": {"reference": Path(task).read_text()}}
text = Path(candidate).read_text()
with grpc.insecure_channel(address) as channel:
    service = pb2_grpc.EvaluatorServiceStub(channel)
    answer = service.EvaluateKernel(pb2.EvaluateKernelRequest(request=request, text=text))
outcome = answer.evaluation.DESCRIPTOR.fields_by_name["outcome"].enum_type.values_by_number
print(outcome[answer.evaluation.outcome].name, answer.speedup, answer.speedup_eager)
