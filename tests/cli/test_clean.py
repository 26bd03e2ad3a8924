"""`kfoundry clean`: caches and what dead processes left go; what lives or is one's own stays."""

import fcntl
import json
import os
from pathlib import Path

from tests.cli.conftest import environment_of, run_kfoundry


def _sizes(files: list[dict[str, str | int]], folder: Path) -> dict[str, int]:
    return {str(Path(str(f["path"])).relative_to(folder)): int(f["size_bytes"]) for f in files}


def test_clean_removes_what_can_go(tmp_path: Path) -> None:
    for name in ("cache/objects/ab/abcd", "tmp/kfoundry-dead/locked-1/x", "tmp/kfoundry-live/x"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_bytes(b"x" * 5000)
    (tmp_path / "cache" / "of another program").write_text("")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "evaluator.key").write_text("key")
    environment = {
        **environment_of(tmp_path),
        "KERNEL_FOUNDRY_CACHE_DIR": str(tmp_path / "cache"),
        "TMPDIR": str(tmp_path / "tmp"),
    }
    live = os.open(tmp_path / "tmp" / "kfoundry-live", os.O_RDONLY)
    fcntl.flock(live, fcntl.LOCK_EX)

    dry = run_kfoundry(tmp_path, "clean", "--dry-run", "--json", environment=environment)
    told = json.loads(dry.stdout)
    removed = _sizes(told["removed"], tmp_path)
    assert set(removed) == {"cache/objects", "tmp/kfoundry-dead"}
    assert all(size >= 5000 for size in removed.values())
    assert _sizes(told["kept"], tmp_path) == {"data/evaluator.key": 3}
    assert (tmp_path / "tmp" / "kfoundry-dead" / "locked-1" / "x").exists()

    done = run_kfoundry(tmp_path, "clean", environment=environment)
    assert done.returncode == 0, done.stderr
    assert {p.name for p in (tmp_path / "tmp").iterdir()} == {"kfoundry-live"}
    assert {p.name for p in (tmp_path / "cache").iterdir()} == {"of another program"}
    assert (tmp_path / "data" / "evaluator.key").read_text() == "key"
    os.close(live)
