"""What a report holds, as the page in it reads it."""

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any


def held_data(report: Path) -> dict[str, Any]:
    found = re.search(r'id="data">([^<]*)</script>', report.read_text())
    assert found is not None
    data: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(found[1])))
    return data
