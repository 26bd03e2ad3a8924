"""Why a kernel may never end: in its object code lanes that wait for each other are apart.

The compiler may have parted them. Where a turn of a loop ends with a question of the lane and the
next one begins with it, SYCL's sends the other lanes into a loop of their own, in which a broadcast
of the first lane's value never reaches them.
"""

from collections.abc import Iterable, Iterator

from kernel_foundry.domain.finding import Finding, FindingKind, Severity


def lanes_apart(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Iterate over the finding of a candidate that did not end, at most one."""
    found = next((f for f in findings if f.rule == "object.absent_lanes"), None)
    if found is not None:
        yield Finding(
            kind=FindingKind.TIME_LIMIT,
            severity=Severity.WARNING,
            message="in the object code some lanes of a sub-group go on without the others and "
            "wait for values of theirs: this may be why it does not end, even if all lanes leave "
            "the source's loop together",
            hint="put sycl::group_barrier(sg) (CUDA: __syncwarp()) at the end of the loop, or take "
            "the next value there and write while (row < rows): the compiler moves if (lane == 0) "
            "at the end of a turn together with that at the beginning of the next",
            line=found.line,
        )
