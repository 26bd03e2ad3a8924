"""How a benchmark writes what it measured: JSON with device, driver, date and commit."""

import argparse
import datetime
import json
import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

from kernel_foundry.domain.device import DeviceSpec

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"


def out_option(parser: argparse.ArgumentParser, name: str) -> None:
    """Add --out, whose default is the benchmark's file among the results."""
    parser.add_argument("--out", type=Path, default=RESULTS / f"{name}.json", help="result file")


def parse_for_device(parser: argparse.ArgumentParser, name: str) -> argparse.Namespace:
    """Add --device and --out, whose default is `name` with the device's kind, and parse."""
    parser.add_argument("--device", default="sycl:0", help="where to measure (sycl:0)")
    parser.add_argument("--out", type=Path, help="result file")
    arguments = parser.parse_args()
    kind = arguments.device.partition(":")[0]
    arguments.out = arguments.out or RESULTS / f"{name}_{kind}.json"
    return arguments


def write_result(out: Path, name: str, device: DeviceSpec, measured: dict[str, Any]) -> None:
    """Write `measured` with what it was measured on."""
    facts = {
        "device": device.name,
        "driver": device.driver_version,
        "architecture": device.architecture,
    }
    _write(out, name, facts, measured)


def write_host_result(out: Path, name: str, measured: dict[str, Any]) -> None:
    """Write `measured` with the host it was measured on, for what needs no device."""
    processor = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    facts = {
        "processor": processor.group(1) if processor else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
    }
    _write(out, name, facts, measured)


def _write(out: Path, name: str, facts: dict[str, Any], measured: dict[str, Any]) -> None:
    result = {
        "benchmark": name,
        **facts,
        "python": platform.python_version(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        **measured,
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(result, indent=1) + "\n")


def commit() -> str:
    """Return the commit of the checkout; a copy without history says so itself."""
    marker = ROOT / "COMMIT"
    if marker.exists():
        return marker.read_text().strip()
    found = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return found.stdout.strip() or "unknown"
