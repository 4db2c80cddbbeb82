"""What a policy would attain, from logged episodes alone."""

from aetdice.estimation.estimate import PolicyEstimate, estimate
from aetdice.estimation.intervals import Interval
from aetdice.estimation.support import Support

__all__ = ["Interval", "PolicyEstimate", "Support", "estimate"]
