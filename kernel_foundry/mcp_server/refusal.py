"""Our errors as the protocol has them: in words for the agent, printable, of bounded size."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from mcp.server.mcpserver.exceptions import ResourceError, ToolError
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS

from kernel_foundry.errors import KernelFoundryError
from kernel_foundry.printable import printable

_LONGEST_ERROR: Final = 2000
"""Characters."""


@contextmanager
def tool_refusals() -> Iterator[None]:
    """Make our errors a tool's.

    Raises:
        ToolError: in place of a `KernelFoundryError`.
    """
    try:
        yield
    except KernelFoundryError as error:
        raise ToolError(_words(error)) from error


@contextmanager
def resource_refusals() -> Iterator[None]:
    """Make our errors a resource's.

    Raises:
        ResourceError: in place of a `KernelFoundryError`.
    """
    try:
        yield
    except KernelFoundryError as error:
        raise ResourceError(_words(error)) from error


@contextmanager
def prompt_refusals() -> Iterator[None]:
    """Make our errors those of a prompt's arguments.

    Raises:
        MCPError: in place of a `KernelFoundryError`.
    """
    try:
        yield
    except KernelFoundryError as error:
        raise MCPError(INVALID_PARAMS, _words(error)) from error


def _words(error: KernelFoundryError) -> str:
    return printable(str(error))[:_LONGEST_ERROR]
