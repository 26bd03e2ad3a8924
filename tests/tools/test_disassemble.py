"""Machine code as text, where a disassembler is installed."""

import pytest

from evaluator_svc.tools.disassemble import disassemble


def test_code_is_text_where_a_disassembler_is_installed(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "nvdisasm"
    program.write_text('#!/bin/sh\n[ "$1" = -c ] && echo "code of $(wc -c < "$2") bytes"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    assert disassemble(b"a cubin") == "code of 7 bytes\n"


def test_a_disassembler_that_fails_is_none(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvdisasm"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    assert disassemble(b"anything") is None
