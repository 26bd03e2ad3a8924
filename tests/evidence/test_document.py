"""docs/evidence.md: its script, its record and its words fit each other."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from kernel_foundry.evidence.fingerprint import fingerprint
from kernel_foundry.evidence.record import EvidenceRecord, read_records, write_record
from kernel_foundry.sdk.verification.verify import verification

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "evidence.md").read_text()
RECORD = DOCS.parent / "examples" / "softmax.record.json"


def _script_says(folder: Path, record: Path) -> dict[str, bool]:
    """Return what the document's script says of a file."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    found = re.search(r"```js\n(.*?)```", TEXT, re.DOTALL)
    assert found is not None
    script = folder / "check.js"
    script.write_text(found[1])
    ended = subprocess.run(
        [node, str(script), str(record)], capture_output=True, text=True, check=True, timeout=30
    )
    return json.loads(ended.stdout)


def test_the_documents_record_is_whole_and_of_the_key_it_names() -> None:
    (record,) = read_records(RECORD)
    name = fingerprint(record.attestation.public_key)
    assert verification(record, None, trusted=(name,)).agrees
    assert f"--key {name}" in TEXT
    assert f"`{record.digest()[:16]}`" in TEXT


def test_a_tool_of_another_language_agrees(record: EvidenceRecord, tmp_path: Path) -> None:
    """Its numbers, order and escapes are RFC 8785's by themselves."""
    assert _script_says(tmp_path, RECORD) == {"digest": True, "signature": True}
    write_record(record, tmp_path / "record.json")
    assert _script_says(tmp_path, tmp_path / "record.json") == {"digest": True, "signature": True}
    changed = (tmp_path / "record.json").read_text().replace("1.25e-07", "1.5e-07")
    (tmp_path / "changed.json").write_text(changed)
    assert _script_says(tmp_path, tmp_path / "changed.json") == {"digest": False, "signature": True}
