"""`python -m kernel_foundry.cli` is `kfoundry`."""

from kernel_foundry.cli.main import main

main()
