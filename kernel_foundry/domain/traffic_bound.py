"""What a time is held against: the traffic bound, and when a kernel counts as being there.

The traffic bound (compulsory bytes over measured bandwidth) is the only hard one; the arithmetic
estimate is none, see `WorkloadAdmission`.
"""

import math
from typing import Final

AT_TRAFFIC_BOUND: Final = 0.97
"""Share of the traffic bound from which a kernel counts as being at it: a measured bandwidth is
known to a few percent."""

NEVER: Final = math.inf
"""Share of the bound that no kernel reaches."""
