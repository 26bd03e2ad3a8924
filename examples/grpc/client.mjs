import { readFileSync } from "node:fs";
import grpc from "@grpc/grpc-js";
import loader from "@grpc/proto-loader";

const [address, task, candidate] = process.argv.slice(2);
const proto = "kernel_foundry/evaluator/v1/evaluator_service.proto";
const definition = loader.loadSync(proto, { includeDirs: ["protos"], keepCase: true, enums: String });
const { EvaluatorService } = grpc.loadPackageDefinition(definition).kernel_foundry.evaluator.v1;
const service = new EvaluatorService(address, grpc.credentials.createInsecure());
const request = { task: { reference: readFileSync(task, "utf8") } };
const text = readFileSync(candidate, "utf8");
service.EvaluateKernel({ request, text }, (error, answer) =>
  console.log(error?.message ?? [answer.evaluation.outcome, answer.speedup, answer.speedup_eager].join(" ")));
