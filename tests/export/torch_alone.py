"""Python with torch and what torch requires, and nothing else: where users run exported files."""

import importlib.metadata
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from packaging.requirements import Requirement

_ABSENT: Final = ("kernel_foundry", "evaluator_svc", "kernel_foundry_native", "numpy", "pytest")
_CHILD: Final = """
import importlib, importlib.metadata, json, sys
steps = json.loads(sys.argv[1])
told = []
for step in steps:
    sys.path += step["paths"]
    sys.modules.pop(step["module"], None)
    import torch
    fast = importlib.import_module(step["module"])
    model = fast.Module(*step["arguments"]).to(step["device"])
    reference = fast._Reference(*step["arguments"]).to(step["device"])
    reference.load_state_dict(model.state_dict())
    inputs = [torch.randn(shape, device=step["device"]) for shape in step["inputs"]]
    with torch.no_grad():
        error = float((model(*inputs) - reference(*inputs)).abs().max())
    told.append({"error": error, **fast.stats()})
names = {d.metadata["Name"] for d in importlib.metadata.distributions()}
found = sorted(name.lower().replace("_", "-").replace(".", "-") for name in names)
for name in ABSENT:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        continue
    raise SystemExit(f"{name} is here")
print(json.dumps({"calls": told, "distributions": found}))
"""


def required_by(name: str) -> set[str]:
    """Return a distribution's name and the names of those that it requires here."""
    found: dict[str, set[str]] = {}
    wanted = [Requirement(name)]
    while wanted:
        each = wanted.pop()
        own = re.sub(r"[-_.]+", "-", each.name).lower()
        extras = {"", *each.extras}
        if extras <= found.get(own, set()):
            continue
        found.setdefault(own, set()).update(extras)
        for requirement in map(Requirement, importlib.metadata.requires(own) or ()):
            marker = requirement.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in extras):
                wanted.append(requirement)
    return set(found)


def site_of(names: set[str], root: Path) -> Path:
    """Return a new folder of packages with some distributions, as links to those that are here.

    Args:
        names: Of the distributions.
        root: Where it lies, as deep as in an environment: some files are beside it.
    """
    site = root / "lib" / "python" / "site-packages"
    site.mkdir(parents=True)
    for name in names:
        distribution = importlib.metadata.distribution(name)
        own = Path(str(distribution.locate_file("")))
        for file in distribution.files or ():
            top = Path(*file.parts) if file.parts[0] == ".." else Path(file.parts[0])
            link = Path(os.path.normpath(site / top))
            if not link.exists() and (own / top).exists() and root in link.parents:
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(os.path.realpath(own / top))
    return site


def call_alone(*steps: dict[str, Any]) -> dict[str, Any]:
    """Call exported modules one after the other in an interpreter without our packages.

    Args:
        steps: Each with `paths` that are importable from then on, `module`, `arguments` of its
            class, shapes of its `inputs`, and `device`.

    Returns:
        Of each step, under `calls`, the error and the file's counts; `distributions` that were
        there at the end.
    """
    code = f"ABSENT = {_ABSENT!r}\n{_CHILD}"
    ended = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, json.dumps(steps)],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
    )
    assert ended.returncode == 0, ended.stderr
    told: dict[str, Any] = json.loads(ended.stdout)
    return told
