"""Files for containers, Kubernetes, systemd and Slurm: valid, and their commands are ours."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import kubernetes_validate
import pytest
import yaml

from kernel_foundry.cli import health as health_command
from kernel_foundry.cli import serve as serve_command
from kernel_foundry.sdk.fleet.membership import FileSource

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
DOCKERFILE = DEPLOY / "containers" / "Dockerfile"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
BATCH = DEPLOY / "slurm" / "evaluators.sbatch"
INSTALLED = "/opt/kernel-foundry/bin/kfoundry"


def manifests() -> list[dict[str, Any]]:
    files = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
    return [
        document
        for file in files
        if file.name != "kustomization.yaml"
        for document in yaml.safe_load_all(file.read_text())
    ]


def pods() -> list[tuple[str, dict[str, Any]]]:
    workloads = [m for m in manifests() if m["kind"] in ("Deployment", "StatefulSet")]
    return [(m["metadata"]["name"], m["spec"]["template"]["spec"]) for m in workloads]


def command_lines() -> Iterator[tuple[str, list[str]]]:
    """Every `kfoundry` with its arguments, and where it stands."""
    for line in DOCKERFILE.read_text().splitlines():
        if line.startswith('CMD ["serve"'):
            yield DOCKERFILE.name, json.loads(line.removeprefix("CMD "))
    for name, pod in pods():
        for container in pod["containers"]:
            yield name, container["args"]
    for unit in UNITS:
        text = unit.read_text().replace("\\\n", " ")
        line = next(part for part in text.splitlines() if part.startswith("ExecStart="))
        words = shlex.split(line.removeprefix("ExecStart="))
        assert words[0] == INSTALLED
        yield unit.name, words[1:]
    for line in BATCH.read_text().replace("\\\n", " ").splitlines():
        if line.startswith("srun kfoundry"):
            expanded = line.removesuffix("&").replace("$port", "50051").replace("$home", "/home/me")
            yield BATCH.name, shlex.split(expanded)[2:]


LINES = list(command_lines())


def test_each_way_to_deploy_has_commands() -> None:
    """So that none is left out of the test below."""
    places = [place for place, _ in LINES]
    assert places.count("Dockerfile") == 3
    assert set(places) >= {
        *(unit.name for unit in UNITS),
        *("archive", "generator", "evaluator-cuda", "evaluator-cpu"),
        BATCH.name,
    }
    assert len(UNITS) == 3


@pytest.mark.parametrize(("place", "words"), LINES, ids=[place for place, _ in LINES])
def test_every_command_line_is_one_of_ours(place: str, words: list[str]) -> None:
    """With the options that the service has, and the security that its address needs."""
    assert words[0] == "serve", place
    asked = serve_command.command.make_context("serve", words[1:]).params
    service = import_module(f"{asked['service']}_svc.__main__").main
    assert isinstance(service, click.Command)
    given = service.make_context("service", ["--listen", asked["listen"], *asked["options"]]).params
    is_open = asked["listen"].startswith("0.0.0.0")
    assert not given["insecure"]
    assert not is_open or all(given[name] for name in ("tls_cert", "tls_key", "tokens", "usage"))


def test_probes_ask_the_port_and_the_name_that_the_pod_has() -> None:
    """By the command itself until it serves; then its certificate on disk may be a newer one."""
    for name, pod in pods():
        (container,) = pod["containers"]
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        asked = {
            kind: container[kind]["exec"]["command"]
            for kind in ("startupProbe", "readinessProbe", "livenessProbe")
            if "exec" in container.get(kind, {})
        }
        assert set(asked) == {"startupProbe"}, name
        for environment, *words in (words[1:] for words in asked.values()):
            assert words[:2] == ["kfoundry", "health"]
            given = health_command.command.make_context("health", words[2:]).params
            assert given["target"] == f"localhost:{ports['grpc']}"
            assert given["tls_name"].removeprefix("probe.") == name
            certificate = environment.removeprefix("KERNEL_FOUNDRY_TLS_CA=")
            assert f"--tls-cert={certificate}" in container["args"]


def test_no_pod_has_a_privilege() -> None:
    """Nor what the sandbox does not need; and what a pod mounts, it has."""
    assert len(pods()) == 4
    for name, pod in pods():
        assert pod["automountServiceAccountToken"] is False, name
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"]:
            security = container["securityContext"]
            assert security["allowPrivilegeEscalation"] is False
            assert security["readOnlyRootFilesystem"] is True
            assert security["capabilities"] == {"drop": ["ALL"]}
    for manifest in manifests():
        if manifest["kind"] in ("Deployment", "StatefulSet"):
            spec = manifest["spec"]
            claims = [c["metadata"]["name"] for c in spec.get("volumeClaimTemplates", [])]
            pod = spec["template"]["spec"]
            there = {*claims, *(volume["name"] for volume in pod["volumes"])}
            mounted = {m["name"] for c in pod["containers"] for m in c["volumeMounts"]}
            assert mounted == there, manifest["metadata"]["name"]


def test_the_fleet_lists_the_replicas_that_there_are(tmp_path: Path) -> None:
    """By the names that a StatefulSet gives its pods."""
    found = {m["metadata"]["name"]: m for m in manifests() if m["kind"] == "StatefulSet"}
    expected = {
        f"{name}-{number}.{name}:50051"
        for name, manifest in found.items()
        for number in range(manifest["spec"]["replicas"])
    }
    fleet = next(m for m in manifests() if m["kind"] == "ConfigMap")["data"]["fleet.yaml"]
    (tmp_path / "fleet.yaml").write_text(fleet)
    entries = FileSource(tmp_path / "fleet.yaml").read().entries
    assert {entry.address for entry in entries} == expected


def test_manifests_are_valid_to_kubernetes() -> None:
    """By the schemas of a release."""
    for manifest in manifests():
        kubernetes_validate.validate(manifest, "1.33", strict=True)


def test_the_container_file_is_sound() -> None:
    """By hadolint."""
    ended = subprocess.run(
        [Path(sys.executable).with_name("hadolint"), DOCKERFILE],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == 0, ended.stdout


def test_units_are_valid_to_systemd(tmp_path: Path) -> None:
    """Each with a program where its own will be installed."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze on PATH")
    program = shutil.which("true")
    for unit in UNITS:
        copy = tmp_path / unit.name
        copy.write_text(unit.read_text().replace(INSTALLED, str(program)))
        ended = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", copy],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert (ended.returncode, ended.stderr) == (0, "")


def test_the_evaluator_shares_no_user_and_no_folder_with_other_units() -> None:
    """Its judge runs callers' Python, which may do what its user may."""
    kinds = ("User", "Group", "StateDirectory", "CacheDirectory", "LogsDirectory")
    pattern = re.compile(rf"^(?:{'|'.join(kinds)})=.+$|/(?:etc|var)/[\w./-]+", re.MULTILINE)
    found = {unit.stem: set(pattern.findall(unit.read_text())) for unit in UNITS}
    evaluator = found.pop("kfoundry-evaluator")
    assert len(evaluator) > len(kinds)
    for name, others in found.items():
        assert not evaluator & others, name


def _program(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(0o755)


def test_a_batch_job_lists_its_nodes_and_drains_them_before_its_end(tmp_path: Path) -> None:
    """At Slurm's signal nothing new is sent to them, and then they are told to stop."""
    programs = tmp_path / "bin"
    programs.mkdir()
    _program(programs, "scontrol", 'printf "gpu1\\ngpu2\\n"')
    _program(
        programs,
        "srun",
        f'trap "touch {tmp_path}/stopped; exit 0" TERM;'
        f" echo $SRUN_CPUS_PER_TASK > {tmp_path}/cores; while :; do sleep 0.05; done",
    )
    environment = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "KFOUNDRY_HOME": str(tmp_path),
        "KFOUNDRY_DRAIN_S": "0",
        "SLURM_CPUS_PER_TASK": "8",
        "SLURM_JOB_ID": "7",
        "SLURM_JOB_NODELIST": "gpu[1-2]",
    }
    file = tmp_path / "fleet.yaml"
    with subprocess.Popen(["bash", BATCH], env=environment) as job:
        try:
            while not (file.exists() and (tmp_path / "cores").exists()):  # srun can be told, too
                assert job.poll() is None
                time.sleep(0.02)
            listed = FileSource(file).read().entries
            job.send_signal(signal.SIGUSR1)
            assert job.wait(280) == 0
        finally:
            job.kill()
    assert [(e.address, e.name, e.drain) for e in listed] == [
        ("gpu1:50051", "gpu1", False),
        ("gpu2:50051", "gpu2", False),
    ]
    assert all(entry.drain for entry in FileSource(file).read().entries)
    assert (tmp_path / "stopped").exists()
    assert (tmp_path / "cores").read_text() == "8\n"
