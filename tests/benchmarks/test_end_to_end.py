"""The result file of the end-to-end benchmark keeps models that were measured before."""

import json
from dataclasses import replace
from pathlib import Path

from benchmarks.end_to_end.__main__ import others
from tests.domain_values import H200


def test_other_models_stay_with_the_commit_they_are_of(tmp_path: Path) -> None:
    file = tmp_path / "end_to_end.json"
    assert others(file, H200, ["resnet"]) == {}
    models = {"transformer": {"is_right": True}, "resnet": {"commit": "b", "is_right": True}}
    file.write_text(json.dumps({"device": H200.name, "commit": "a", "models": models}))
    assert others(file, H200, ["resnet"]) == {"transformer": {"commit": "a", "is_right": True}}
    assert others(file, H200, ["transformer"]) == {"resnet": {"commit": "b", "is_right": True}}
    assert others(file, H200, ["transformer", "resnet"]) == {}
    assert others(file, replace(H200, name="other"), ["resnet"]) == {}
