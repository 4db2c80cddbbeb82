"""The paper's numbers: by row and column its mean and standard deviation over seeds, where it prints one."""

from collections.abc import Sequence
from functools import partial

from aetdice.studies.study import Paper

Cells = dict[str, tuple[float, float | None]]


def _cells(headings: Sequence[str], *values: tuple[float, float | None]) -> Cells:
    return dict(zip(headings, values, strict=False))


REGIMES = ("ESR", "BSR 0.5", "SER", "LSR")
CONVEX = ("w=[1, 0]", "w=[0.5, 0.5]", "w=[0, 1]", "G, F")
SAFE = ("CD(0.1)", "CD(0.5)", "safe-CD(0.1)", "safe-CD(0.5)")
_regimes, _convex = partial(_cells, REGIMES), partial(_cells, CONVEX)

FAIR_TAXI: Paper = {
    "ESR": _regimes((1.197, None), (-0.797, None), (1.130, None)),
    "BSR 0.5": _regimes((0.193, None), (-0.788, None), (1.748, None)),
    "SER": _regimes((0.110, None), (-1.045, None), (1.804, None)),
}
"""On the paper's own layout, which it does not print."""

POINT_MAZE: dict[str, Paper] = {
    "pointmaze-2obj": {
        "AETDICE ESR": _regimes((6.67, 0.08), (11.90, 0.17), (8.73, 0.08), (164.86, 6.68)),
        "AETDICE BSR 0.5": _regimes((5.91, 0.32), (11.93, 0.11), (9.01, 0.04), (211.79, 12.29)),
        "AETDICE SER": _regimes((4.06, 0.05), (11.82, 0.05), (9.74, 0.02), (284.05, 1.42)),
        "OptiDICE [0.5, 0.5]": _regimes((3.64, 0.01), (8.77, 0.02), (3.81, 0.02), (417.01, 3.13)),
        "OptiDICE [1, 0]": _regimes((3.63, 0.02), (8.71, 0.04), (3.82, 0.03), (409.62, 5.70)),
        "OptiDICE [0.75, 0.25]": _regimes((3.67, 0.02), (8.91, 0.19), (4.53, 1.19), (415.88, 6.09)),
        "ESR-IQL": _regimes((6.56, 0.01), (11.59, 0.03), (8.56, 0.02), (153.78, 1.49)),
    },
    "pointmaze-3obj": {
        "AETDICE ESR": _regimes((6.79, 0.15), (11.76, 0.10), (10.15, 0.02), (86.05, 0.46)),
        "AETDICE BSR 0.5": _regimes((4.72, 0.24), (12.04, 0.07), (11.14, 0.05), (120.34, 1.77)),
        "AETDICE SER": _regimes((-0.19, 0.03), (11.43, 0.03), (12.81, 0.02), (213.78, 1.38)),
        "OptiDICE [1/3, 1/3, 1/3]": _regimes((-0.26, 0.07), (10.61, 0.06), (12.27, 0.01), (176.92, 1.63)),
        "OptiDICE [1, 0, 0]": _regimes((-0.34, 0.03), (2.49, 0.06), (2.17, 0.03), (203.20, 4.01)),
        "OptiDICE [0.75, 0.25, 0]": _regimes((-0.38, 0.01), (2.41, 0.04), (-2.20, 0.03), (198.15, 3.22)),
        "ESR-IQL": _regimes((7.20, 0.03), (12.03, 0.04), (10.17, 0.02), (87.16, 0.94)),
    },
}
"""By maze (paper: tab:full-comparison-stacked), on the paper's own layouts, which it does not print.

Its linear rows are its linear scalarisation. For three objectives it prints the weights of two; they
are read as [1/3, 1/3, 1/3], [1, 0, 0] and [0.75, 0.25, 0].
"""

CONVEX_BODIES: dict[tuple[str, str], Paper] = {
    ("ant", "expert"): {
        "Lin-[1, 0]": _convex((1089.56, 27.60), (729.61, 10.94), (369.66, 11.93), (12.91, 0.03)),
        "Lin-[0.5, 0.5]": _convex((584.69, 18.29), (689.23, 12.74), (793.77, 23.10), (13.05, 0.04)),
        "Lin-[0, 1]": _convex((88.83, 1.53), (1221.97, 26.71), (2355.10, 53.65), (12.25, 0.03)),
        "FairDICE": _convex((617.17, 19.68), (682.65, 20.06), (748.13, 30.64), (13.04, 0.06)),
        "ESR-IQL [1, 0]": _convex((1296.49, 30.66), (811.82, 14.71), (327.15, 6.20), (12.96, 0.03)),
        "ESR-IQL [0.5, 0.5]": _convex((85.54, 1.61), (1243.33, 17.07), (2401.12, 34.37), (12.23, 0.02)),
        "ESR-IQL [0, 1]": _convex((87.32, 3.82), (1240.07, 19.36), (2392.82, 40.01), (12.25, 0.04)),
        "AET-ESR [0.5, 0.5]": {"w=[0.5, 0.5]": (1067.22, 6.81), "G, F": (13.04, 0.12)},
        "AETDICE": _convex((816.78, 61.16), (949.73, 22.02), (1082.68, 85.08), (13.69, 0.05)),
    },
    ("ant", "amateur"): {
        "Lin-[1, 0]": _convex((869.42, 27.99), (636.55, 10.38), (403.67, 17.70), (12.77, 0.03)),
        "Lin-[0.5, 0.5]": _convex((540.80, 29.59), (623.84, 13.05), (706.89, 29.54), (12.85, 0.04)),
        "Lin-[0, 1]": _convex((138.07, 6.21), (875.34, 22.25), (1612.61, 50.02), (12.31, 0.02)),
        "FairDICE": _convex((509.52, 12.81), (638.80, 26.01), (768.09, 54.61), (12.87, 0.07)),
        "ESR-IQL [1, 0]": _convex((1570.58, 17.03), (876.82, 9.37), (183.06, 3.94), (12.57, 0.03)),
        "ESR-IQL [0.5, 0.5]": _convex((98.57, 14.41), (976.31, 13.21), (1854.05, 37.46), (12.11, 0.12)),
        "ESR-IQL [0, 1]": _convex((88.11, 2.58), (977.25, 13.05), (1866.40, 27.70), (12.01, 0.02)),
        "AETDICE": _convex((610.17, 46.86), (654.87, 7.66), (699.56, 31.71), (12.96, 0.03)),
    },
    ("walker2d", "expert"): {
        "Lin-[1, 0]": _convex((718.58, 23.50), (675.69, 40.14), (632.80, 93.83), (13.02, 0.13)),
        "Lin-[0.5, 0.5]": _convex((279.96, 41.59), (1856.50, 202.64), (3433.03, 443.57), (13.76, 0.06)),
        "Lin-[0, 1]": _convex((10.28, 1.19), (7292.20, 402.27), (14574.12, 805.61), (11.91, 0.07)),
        "FairDICE": _convex((307.14, 15.98), (1733.19, 97.94), (3159.25, 207.63), (13.78, 0.04)),
        "ESR-IQL [1, 0]": _convex((689.95, 85.09), (772.39, 123.46), (854.84, 328.36), (13.21, 0.25)),
        "ESR-IQL [0.5, 0.5]": _convex((10.53, 1.45), (7366.92, 326.81), (14723.31, 654.99), (11.94, 0.10)),
        "ESR-IQL [0, 1]": _convex((12.35, 0.83), (6765.08, 427.43), (13517.81, 854.75), (12.02, 0.10)),
        "AETDICE": _convex((246.26, 70.02), (2566.75, 850.14), (4887.23, 1637.10), (13.87, 0.78)),
    },
    ("walker2d", "amateur"): {
        "Lin-[1, 0]": _convex((540.87, 11.01), (491.55, 24.05), (442.23, 44.79), (12.38, 0.11)),
        "Lin-[0.5, 0.5]": _convex((227.71, 13.15), (2780.73, 199.93), (5333.75, 402.39), (14.01, 0.09)),
        "Lin-[0, 1]": _convex((8.37, 0.86), (8119.82, 251.87), (16231.27, 504.44), (11.81, 0.08)),
        "FairDICE": _convex((261.07, 18.87), (1143.11, 77.84), (2025.16, 160.95), (13.17, 0.09)),
        "ESR-IQL [1, 0]": _convex((176.32, 25.68), (149.61, 26.89), (122.91, 31.93), (9.94, 0.41)),
        "ESR-IQL [0.5, 0.5]": _convex((42.31, 11.21), (6710.95, 614.79), (13379.58, 1237.66), (13.20, 0.22)),
        "ESR-IQL [0, 1]": _convex((39.94, 6.93), (6607.13, 427.73), (13174.33, 861.51), (13.16, 0.12)),
        "AETDICE": _convex((277.03, 42.64), (3376.26, 532.50), (6475.49, 1102.24), (14.37, 0.08)),
    },
}
"""By body and quality, on D4MORL's own data with convex F at c = (1, 1).

(paper: tab:results_ant_expert and the three after it; AET-ESR from tab:mo_ant)
"""


def _by_rho(method: str, *values: tuple[float, float | None]) -> dict[str, Cells]:
    """A row of the paper is one method trained for each column in turn: here a row each."""
    return {f"{method}{name}": {name: value} for name, value in zip(SAFE, values, strict=False)}


EFFICIENCY: dict[str, Paper] = {
    "walker2d": {
        "cloning": _cells(SAFE, (0.051, 0.043), (1.766, 0.453), (15.440, None), (18.680, None)),
        **_by_rho("ESR-IQL ", (0.128, 0.120), (4.136, 0.728)),
        **_by_rho("AETDICE ", (0.107, 0.060), (4.432, 1.270)),
        "AETDICE safe-CD(0.1)": {"CD(0.1)": (0.330, 0.043), "safe-CD(0.1)": (16.272, None)},
        "AETDICE safe-CD(0.5)": {"CD(0.5)": (4.456, 0.826), "safe-CD(0.5)": (19.572, None)},
    },
    "halfcheetah": {
        "cloning": _cells(SAFE, (0.139, 0.092), (3.686, 0.838)),
        **_by_rho("ESR-IQL ", (1.516, 0.561), (22.010, 6.660)),
        **_by_rho("AETDICE ", (12.842, 2.570), (45.768, 6.580)),
    },
}
"""Cobb-Douglas with the alive bonus (paper: tab:results_walker_cd, tab:results_halfcheetah).

The paper's ESR-DICE is AETDICE with linear G. It does not say of which quality its data is. Its safe-CD
scores cannot come from the formula that it prints.
"""
