"""A module that the host lacks is told before anything is started."""

import pytest

from evaluator_svc.requests.missing_modules import check_imports
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import TaskInvalidError


def _check(first_lines: str) -> None:
    check_imports(Task(name="t", reference=f"{first_lines}class Model: ...\n"))


@pytest.mark.parametrize(
    "imports", ["import no_such.part", "from no_such import part", "import math, no_such as n"]
)
def test_a_missing_module_is_named_with_its_line(imports: str) -> None:
    with pytest.raises(TaskInvalidError, match="line 2: the file imports 'no_such', which is not"):
        _check(f"import torch.nn.functional\n{imports}\n")


@pytest.mark.parametrize(
    "text",
    [
        "try:\n    import no_such\nexcept ImportError:\n    no_such = None\n",
        "def late():\n    import no_such\n",
        "if False:\n    import no_such\n",
        "import __main__, sys, evaluator_svc.judge, tests\n",
        "from . import part\n",
        "import sys\nsys.path.insert(0, '/folder')\nimport no_such\n",
    ],
)
def test_what_may_never_be_imported_is_left_to_the_judge(text: str) -> None:
    _check(text)
