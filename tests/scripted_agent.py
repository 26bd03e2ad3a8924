"""A coding agent for tests, copied beside its `reply.md`: it behaves as its argument says.

It leaves notes in `notes`: its folder, a process that it started, the names of its variables.
"""

import os
import subprocess
import sys
import time
from pathlib import Path


def main() -> None:
    """Answer the prompt in the working directory, or fail."""
    behaviour, home = sys.argv[1], Path(__file__).parent
    reply, notes = home / "reply.md", home / "notes"
    assert "candidate.md" in Path("PROMPT.md").read_text()
    child = 0
    if behaviour in ("hang", "answer"):
        # One that would outlive its parent.
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid
    whole = home / "notes.new"
    whole.write_text("\n".join([str(Path.cwd()), str(child), *sorted(os.environ)]))
    whole.rename(notes)
    match behaviour:
        case "answer":
            Path("candidate.md").write_text(reply.read_text())
        case "vary":
            mark = f"```sycl\n// variant {os.getpid()}\n"
            Path("candidate.md").write_text(reply.read_text().replace("```sycl\n", mark))
        case "link":
            Path("candidate.md").symlink_to(reply)
        case "flood":
            Path("candidate.md").write_text("x" * 40_000_000)
        case "fail":
            print("\x1b[31mnot logged in, key sk-planted-9f3aZq71xW")
            sys.exit(7)
        case "hang":
            time.sleep(60)
        case _:
            print("I would rather not.")


if __name__ == "__main__":
    main()
