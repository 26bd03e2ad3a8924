"""A scripted agent: it does what a skill says, in the order in which it says it."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

from mcp import Client

from tests.mcp_server.conftest import answer_of

_STEP = re.compile(
    r"^(?:`(?P<file>[\w./]+)`:\n\n)?(?P<fence>`{3,})(?P<kind>\w+)\n(?P<text>.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)
_TEXT_OF = "TEXT OF "
_SLOWER = "is slower than what was judged"


class ScriptedAgent:
    """Writes the files that a skill shows and calls the tools that it names.

    Args:
        agent: Connected to a server.
        folder: The server's root.
        evaluations: What its user lets a search have, whatever skills say.
    """

    def __init__(self, agent: Client, folder: Path, *, evaluations: int) -> None:
        self._agent = agent
        self._folder = folder
        self._evaluations = evaluations
        self.answers: list[tuple[str, dict[str, Any], dict[str, Any]]] = []
        """Each call so far: tool, arguments as the skill has them, answer."""

    async def follow(self, skill: str) -> None:
        """Do the steps of a skill's text."""
        for step in _STEP.finditer(skill):
            if step["file"]:
                (self._folder / step["file"]).write_text(step["text"])
            elif step["kind"] == "json":
                call = json.loads(step["text"])
                sent = {name: self._sent(value) for name, value in call["arguments"].items()}
                if "evaluations" in sent:
                    sent["evaluations"] = self._evaluations
                got = await self._answer(call["tool"], sent)
                self.answers.append((call["tool"], call["arguments"], got))

    async def _answer(self, tool: str, sent: dict[str, Any]) -> dict[str, Any]:
        """Ask again for an export that the host was busier for than for its verdict."""
        while True:
            result = await self._agent.call_tool(tool, sent)
            if not (result.is_error and _SLOWER in result.content[0].text):
                return answer_of(result)

    def of(self, tool: str) -> list[dict[str, Any]]:
        """Return the answers of a tool, in order."""
        return [got for name, _arguments, got in self.answers if name == tool]

    def _sent(self, value: Any) -> Any:
        if isinstance(value, str) and value.startswith(_TEXT_OF):
            return (self._folder / value.removeprefix(_TEXT_OF)).read_text()
        return value


def commands(skill: str) -> list[list[str]]:
    """Return the words of the commands that a skill's text shows."""
    blocks = [step["text"] for step in _STEP.finditer(skill) if step["kind"] == "sh"]
    return [shlex.split(line) for block in blocks for line in block.splitlines()]
