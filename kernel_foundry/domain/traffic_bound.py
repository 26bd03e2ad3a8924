"""The traffic bound, and when a kernel counts as having reached it.

It is compulsory bytes over measured bandwidth, and the only hard bound of a time. The arithmetic
estimate is none (`WorkloadAdmission`).
"""

import math
from typing import Final

AT_TRAFFIC_BOUND: Final = 0.97
"""Share of the traffic bound from which a kernel counts as being at it: a measured bandwidth is
known to a few percent."""

NEVER: Final = math.inf
"""Share of the bound that no kernel reaches."""
