"""Fuzzes one target with Atheris: `python -m tests.fuzz plan --minutes 10`.

Starts from `tests/fuzz/seeds/TARGET`. An input that breaks the target is written to the folder of
`--found`; put it under `seeds/TARGET` with the mend, and it is a test from then on.
Atheris is no dependency of the tests: `pip install atheris`.
"""

import argparse
import importlib
import sys
from pathlib import Path

SEEDS = Path(__file__).with_name("seeds")


def main() -> None:
    """Fuzz until the time is over or something breaks."""
    names = sorted(path.name for path in SEEDS.iterdir())
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target", choices=names)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long (default: 10)")
    parser.add_argument("--found", type=Path, default=Path("build/fuzz"), help="where findings go")
    arguments = parser.parse_args()
    atheris = importlib.import_module("atheris")  # not among the tests' dependencies
    targets = importlib.import_module("tests.fuzz.targets").TARGETS
    # Not by import: an editable installation has a loader of its own, which that does not see.
    atheris.instrument_all()
    corpus = arguments.found / arguments.target
    corpus.mkdir(parents=True, exist_ok=True)
    options = [
        sys.argv[0],
        f"-max_total_time={int(60 * arguments.minutes)}",
        "-timeout=10",
        "-rss_limit_mb=4096",
        "-max_len=65536",
        f"-artifact_prefix={corpus}/broken-",
        "-print_final_stats=1",
        str(corpus),
        str(SEEDS / arguments.target),
    ]
    atheris.Setup(options, targets[arguments.target])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
