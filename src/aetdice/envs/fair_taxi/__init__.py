"""Fair-Taxi and its dataset."""

from aetdice.envs.fair_taxi.collection import collect_fair_taxi
from aetdice.envs.fair_taxi.taxi import FairTaxi

__all__ = ["FairTaxi", "collect_fair_taxi"]
