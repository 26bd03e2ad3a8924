"""Files for fleets of Ray Serve: valid, and what they start is ours."""

import os
import shlex
import signal
import subprocess
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from evaluator_svc.ray_app import DeviceClass
from kernel_foundry.cli import fleet as fleet_command
from kernel_foundry.rpc import gateway
from kernel_foundry.rpc.limits import MESSAGE_LIMIT_BYTES

DEPLOY = Path(__file__).parents[2] / "deploy" / "ray"
BATCH = DEPLOY / "fleet.sbatch"
SERVICE, *OTHERS = yaml.safe_load_all((DEPLOY / "rayservice.yaml").read_text())
CONFIGURATION: dict[str, Any] = yaml.safe_load(SERVICE["spec"]["serveConfigV2"])
CLUSTER = SERVICE["spec"]["rayClusterConfig"]
PODS = [CLUSTER["headGroupSpec"]["template"], CLUSTER["workerGroupSpecs"][0]["template"]]


def test_applications_are_ours_and_their_arguments_those_of_a_class() -> None:
    for path in CONFIGURATION["grpc_options"]["grpc_servicer_functions"]:
        module, _, name = path.rpartition(".")
        assert callable(getattr(import_module(module), name))
    (application,) = CONFIGURATION["applications"]
    module, _, name = application["import_path"].partition(":")
    assert callable(getattr(import_module(module), name))
    asked = DeviceClass.from_arguments(application["args"])
    (group,) = CLUSTER["workerGroupSpecs"]
    resources = group["template"]["spec"]["containers"][0]["resources"]
    assert asked.max_replicas == group["maxReplicas"]  # one GPU for each host
    assert resources["limits"]["nvidia.com/gpu"] == group["rayStartParams"]["num-gpus"] == "1"
    assert float(resources["limits"]["cpu"]) >= asked.cpus
    assert group["template"]["spec"]["terminationGracePeriodSeconds"] > asked.drain_seconds
    mounted = {m["mountPath"] for m in group["template"]["spec"]["containers"][0]["volumeMounts"]}
    assert {str(Path(path).parent) for path in (asked.tokens, asked.usage)} <= mounted


def test_what_users_have_used_outlives_a_pod() -> None:
    """And its signing key: in a claim, a folder for each node."""
    (application,) = CONFIGURATION["applications"]
    folder = str(Path(application["args"]["usage"]).parent)
    worker = PODS[1]["spec"]
    (container,) = worker["containers"]
    (mount,) = [m for m in container["volumeMounts"] if m["mountPath"] == folder]
    assert mount["subPathExpr"] == "$(NODE_NAME)"
    assert "NODE_NAME" in {variable["name"] for variable in container["env"]}
    (volume,) = [v for v in worker["volumes"] if v["name"] == mount["name"]]
    (claim,) = [m for m in OTHERS if m["kind"] == "PersistentVolumeClaim"]
    assert volume["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]


def _policies(labels: dict[str, str]) -> list[dict[str, Any]]:
    """Those of all our manifests for a pod with these labels."""
    plain = yaml.safe_load_all((DEPLOY.parent / "kubernetes" / "network.yaml").read_text())
    return [
        policy
        for policy in [*plain, *OTHERS]
        if policy["kind"] == "NetworkPolicy"
        and policy["spec"]["podSelector"]["matchLabels"].items() <= labels.items()
    ]


def _ports(policies: list[dict[str, Any]], direction: str, peer: str) -> set[int]:
    """Ports of rules in which a peer is selected by `peer`."""
    rules = [rule for policy in policies for rule in policy["spec"].get(direction, ())]
    return {
        port["port"]
        for rule in rules
        if peer in str(rule["from" if direction == "ingress" else "to"])
        for port in rule.get("ports", ())
    }


def test_ray_s_pods_have_policies_of_their_own() -> None:
    """The operator reaches them, others the gateway alone; a worker reaches nothing outside."""
    head, worker = (pod["metadata"]["labels"] for pod in PODS)
    head = {**head, "ray.io/node-type": "head"}  # as the operator labels it
    worker = {**worker, "ray.io/node-type": "worker"}
    names = [[p["metadata"]["name"] for p in _policies(labels)] for labels in (head, worker)]
    assert names == [["kfoundry-ray", "kfoundry-ray-head"], ["kfoundry-ray"]]
    assert _ports(_policies(head), "ingress", "kuberay-operator") == {8000, 8265}
    assert _ports(_policies(head), "ingress", "{'podSelector': {}}") == {50050}
    assert _ports(_policies(head), "egress", "ipBlock") == {443, 6443}
    assert _ports(_policies(head), "egress", "'control'") == {50052, 50053}
    assert _ports(_policies(worker), "egress", "ipBlock") == set()


def test_the_gateway_is_beside_the_head_and_before_all_services() -> None:
    """Its service and its ports fit, and its files are mounted."""
    head = PODS[0]["spec"]
    (container,) = [c for c in head["containers"] if c["name"] == "gateway"]
    given = gateway.main.make_context("gateway", container["args"][2:]).params
    assert container["args"][:2] == ["serve", "gateway"]
    assert given["ingress"] == f"127.0.0.1:{CONFIGURATION['grpc_options']['port']}"
    assert (given["archive"], given["generator"]) == ("archive:50052", "generator:50053")
    (service,) = [m for m in OTHERS if m["kind"] == "Service"]
    (port,) = service["spec"]["ports"]
    assert given["listen"] == f"0.0.0.0:{port['port']}"
    assert container["ports"] == [{"name": "gateway", "containerPort": port["port"]}]
    mounted = {m["mountPath"]: m["name"] for m in container["volumeMounts"]}
    (variable,) = container["env"]
    files = [given["tls_cert"], given["tls_key"], given["tokens"], variable["value"]]
    assert {str(Path(file).parent) for file in files} == set(mounted)
    assert set(mounted.values()) == {volume["name"] for volume in head["volumes"]}


@pytest.mark.ray
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_configuration_is_valid_to_ray() -> None:
    from ray.serve.schema import ServeDeploySchema

    ServeDeploySchema.model_validate(CONFIGURATION)


def test_manifests_are_valid_to_kubernetes() -> None:
    """By the schemas of a release; of what is the operator's own kind, the pods."""
    for number, pod in enumerate(PODS):
        named = {**pod, "metadata": {**pod["metadata"], "name": f"pod-{number}"}}
        kubernetes_validate.validate(
            {"apiVersion": "v1", "kind": "Pod", **named}, "1.33", strict=True
        )
    for manifest in OTHERS:
        kubernetes_validate.validate(manifest, "1.33", strict=True)


def test_no_pod_has_a_privilege_and_ray_asks_for_a_token() -> None:
    assert CLUSTER["authOptions"] == {"mode": "token"}
    for pod in PODS:
        security = pod["spec"]["securityContext"]
        assert security["runAsNonRoot"] is True
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["spec"]["containers"]:
            assert container["securityContext"]["allowPrivilegeEscalation"] is False
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        limit = {"name": "RAY_SERVE_GRPC_MAX_MESSAGE_SIZE", "value": str(MESSAGE_LIMIT_BYTES)}
        assert limit in pod["spec"]["containers"][0]["env"]


def _program(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(0o755)


def _batch(folder: Path, *, srun: str) -> dict[str, str]:
    """The environment of a batch job whose `srun` is this program."""
    programs = folder / "bin"
    programs.mkdir()
    _program(programs, "scontrol", 'printf "gpu1\\ngpu2\\n"')
    _program(programs, "srun", srun)
    _program(programs, "kfoundry", f'echo "$@" > {folder}/"$2"; [ "$1" = fleet ] || exec sleep 600')
    return {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "KFOUNDRY_HOME": str(folder),
        "SLURM_CPUS_PER_TASK": "32",
        "SLURM_GPUS_ON_NODE": "4",
        "SLURM_JOB_ID": "7",
        "SLURM_JOB_NODELIST": "gpu[1-2]",
        "SLURM_JOB_NUM_NODES": "2",
    }


@pytest.mark.parametrize("code", [0, 3])
def test_a_batch_job_deploys_a_replica_for_each_gpu_and_takes_them_down(
    tmp_path: Path, code: int
) -> None:
    """At Slurm's signal its applications are told to end; the job ends with them, as they do.

    Its gateway starts once they are up.
    """
    said = tmp_path / "said"
    waits = f"while [ ! -e {tmp_path}/down ]; do sleep 0.05; done"
    ready = f"[ ! -e {tmp_path}/gateway ] && echo 127.0.0.1:9000/cuda"
    environment = _batch(tmp_path, srun=f'echo "$@" > {said}; {ready}; {waits}; exit {code}')
    with subprocess.Popen(["bash", BATCH], env=environment) as job:
        try:
            while not all((tmp_path / name).exists() for name in ("address", "said", "gateway")):
                assert job.poll() is None
                time.sleep(0.02)
            address = (tmp_path / "address").read_text()
            job.send_signal(signal.SIGUSR1)
            assert job.wait(280) == code
        finally:
            job.kill()
    assert address == "gpu1:50050/cuda\n"
    assert not (tmp_path / "address").exists()
    ray, _, ours = said.read_text().partition(" -- ")
    assert ray == "ray symmetric-run --address gpu1:6379 --min-nodes 2"
    up = {"replicas": "1-8", "wait": True, "insecure": False, "port": 9000, "kinds": ("cuda",)}
    _taken("up", ours, up)
    words = shlex.split((tmp_path / "gateway").read_text())
    before = gateway.main.make_context("gateway", words[2:]).params
    assert (before["listen"], before["ingress"]) == ("0.0.0.0:50050", "127.0.0.1:9000")
    assert before["tokens"] == tmp_path / "tokens.json"
    _taken("down", f"kfoundry {(tmp_path / 'down').read_text()}", {"address": "gpu1:6379"})


def test_a_batch_job_fails_with_its_fleet(tmp_path: Path) -> None:
    """And nobody is sent to a gateway that is not there."""
    environment = _batch(tmp_path, srun="sleep 0.1; exit 3")
    assert subprocess.run(["bash", BATCH], env=environment, check=False).returncode == 3
    assert not (tmp_path / "address").exists()
    assert not (tmp_path / "gateway").exists()
    assert not (tmp_path / "down").exists()


def _taken(name: str, line: str, expected: dict[str, Any]) -> None:
    """Assert that a command of `kfoundry fleet` takes a line, as `expected`."""
    words = shlex.split(line)
    assert words[:3] == ["kfoundry", "fleet", name]
    given = fleet_command.command.commands[name].make_context(name, words[3:]).params
    assert given.items() >= expected.items()
