"""The self-test with its live cheats, as a result file: what `kfoundry selftest --cheats` says.

Writes JSON with device, driver, date and commit.
Run: python benchmarks/selftest.py --device sycl:0 [--out FILE]
"""

import argparse
import sys
import time

from benchmarks.result_file import parse_for_device, write_result
from kernel_foundry.cli.selftest_view import selftest_object
from kernel_foundry.sdk.client import connect
from kernel_foundry.sdk.selftest.case_folder import own_cases


def main() -> None:
    """Probe and judge, then write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    arguments = parse_for_device(parser, "selftest")
    with connect() as foundry:
        spec = next(d for d in foundry.capabilities().devices if d.id == arguments.device)
        language = spec.language
        cases = tuple(c for c in own_cases() if c.language is language)
        started_s = time.perf_counter()
        found = foundry.selftest(device=arguments.device, cases=cases)
        seconds = time.perf_counter() - started_s
    said = selftest_object(found)
    print(f"{seconds:.0f} s: cheats {said['cheats']}, honest {said['honest']}")
    write_result(arguments.out, "selftest", spec, {"seconds": seconds, **said})
    sys.exit(0 if found.passed else 1)


if __name__ == "__main__":
    main()
