"""The flow, the residual and the dual loss: one equation per function."""

from aetdice.dice.flow import Discounted, FiniteHorizon, Flow
from aetdice.dice.loss import dual_loss, ratio, regulariser, residual

__all__ = ["Discounted", "FiniteHorizon", "Flow", "dual_loss", "ratio", "regulariser", "residual"]
