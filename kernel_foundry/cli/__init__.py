"""The command line: `kfoundry`. One file for each command; `main` is the entry point."""

from kernel_foundry.cli.main import main

__all__ = ["main"]
