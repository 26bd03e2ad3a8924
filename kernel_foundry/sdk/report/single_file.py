"""The page as one file with its data inside: no server, no network, no other file.

Each module becomes a function's body, so that names of modules stay their own. A policy in the
file allows its own script and style alone, by their hashes.
"""

import base64
import gzip
import hashlib
import re
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any, Final

from kernel_foundry.printable import printable
from kernel_foundry.sdk.report.page import page_files
from kernel_foundry.sdk.report.page_objects import page_json
from kernel_foundry.whole_file import writing

_IMPORT: Final = re.compile(r'^import \{([^}]*)\} from "\./(\w+)\.js";\n', re.M)
_EXPORT: Final = re.compile(r"^export (?=(?:async )?(?:function|class) (\w+))", re.M)


def write_single_file(path: Path, data: Mapping[str, Any], *, title: str, summary: str) -> None:
    """Write the page as one HTML file, with the folders that it lies in.

    Args:
        path: The file.
        data: What `HeldRun` or `HeldSuite` of `page/source.js` reads.
        title: Name of the page.
        summary: One line for readers whose browser runs no script.

    Raises:
        InvalidArgumentError: it cannot be written there.
    """
    html = _single_file(data, title=escape(printable(title)), summary=escape(printable(summary)))
    with writing(f"the report {path}", field="path"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(html, encoding="utf-8")


def _single_file(data: Mapping[str, Any], *, title: str, summary: str) -> str:
    files = page_files()
    script = "".join(_wrapped(name, files) for name in _in_order("main", files))
    style = files["style.css"].text
    packed = gzip.compress(page_json(data).encode(), compresslevel=9, mtime=0)
    policy = (
        f"default-src 'none'; script-src 'sha256-{_hash(script)}'; "
        f"style-src 'sha256-{_hash(style)}'; img-src data:; base-uri 'none'; form-action 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title} · Kernel Foundry</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<noscript>{summary} This report draws its data with scripts of its own: allow them.</noscript>
<script type="application/octet-stream" id="data">{base64.b64encode(packed).decode()}</script>
<script type="module">{script}</script>
</body>
</html>
"""


def _in_order(name: str, files: Mapping[str, Any]) -> list[str]:
    """A module behind those that it imports."""

    def visit(module: str) -> Iterator[str]:
        for found in _IMPORT.finditer(files[f"{module}.js"].text):
            yield from visit(found[2])
        yield module

    return list(dict.fromkeys(visit(name)))


def _wrapped(name: str, files: Mapping[str, Any]) -> str:
    text = files[f"{name}.js"].text
    exports = ", ".join(found[1] for found in _EXPORT.finditer(text))
    body = _EXPORT.sub("", _IMPORT.sub(r"const {\1} = module_\2;\n", text))
    return f"\nconst module_{name} = (() => {{\n{body}\nreturn {{ {exports} }};\n}})();\n"


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
