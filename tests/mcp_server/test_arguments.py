"""Arguments of tools: devices as `devices` names them, and what is refused in words of ours."""

from pathlib import Path

import pytest
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import TypeAdapter, ValidationError

from kernel_foundry.mcp_server.allowance import Allowances
from kernel_foundry.mcp_server.arguments import DeviceName
from kernel_foundry.mcp_server.server import make_server
from kernel_foundry.sdk.services import Targets


@pytest.mark.parametrize(
    "device",
    ["", "sycl", "cuda:1", "sycl:0@two", "cuda:0@gpuhost:50051", "cuda:nvidia-h200-1f0c9a7e"],
)
def test_what_devices_are_called_may_be_asked_for(device: str) -> None:
    assert TypeAdapter(DeviceName).validate_python(device) == device


@pytest.mark.parametrize("device", ["hip:0", "sycl:", "sycl@two", "sycl:0@", "localhost:50051"])
def test_what_is_no_device_is_refused(device: str) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(DeviceName).validate_python(device)


async def test_what_is_wrong_with_arguments_is_said_for_each(tmp_path: Path) -> None:
    """Without the library's link, and without repeating what was sent."""
    server = make_server(tmp_path, Targets(), Allowances(evaluations=1, seconds=1.0))
    arguments = {"task": 7, "device": "hip:0", "max_configurations": 0, "seconds": "long"}
    with pytest.raises(ToolError) as caught:
        await server.call_tool("sweep", arguments)
    faults = str(caught.value).removeprefix("sweep: ").split("; ")
    assert [fault for fault in faults if not fault.startswith("device")] == [
        "task: expected text",
        "candidate: is missing",
        "max_configurations: expected at least 1",
        "seconds: expected a number",
    ]
    assert "hip" not in str(caught.value)
