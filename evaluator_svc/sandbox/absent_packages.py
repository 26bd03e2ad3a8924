"""Makes our own packages absent, as where they are not installed.

For processes that import files of others, and for exported files on trial. What runs already goes
on: only new imports fail.
"""

import importlib.abc
import sys

from evaluator_svc.sandbox.host_paths import OWN_PACKAGES


class _Absent(importlib.abc.MetaPathFinder):
    """Finds nothing of this package."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        """Refuse our own packages."""
        if fullname.partition(".")[0] in OWN_PACKAGES:
            raise ModuleNotFoundError(f"{fullname} is not installed here", name=fullname)


def hide_own_packages() -> None:
    """Take all modules of ours from `sys.modules`, and let nobody import them again."""
    sys.meta_path.insert(0, _Absent())
    for name in [n for n in sys.modules if n.partition(".")[0] in OWN_PACKAGES]:
        del sys.modules[name]
