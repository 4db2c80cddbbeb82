"""The paper's tables of the bodies, on D4MORL's own data."""

from collections.abc import Mapping

from aetdice.studies.bodies.scenes import Convex, Efficiency, Scene

Entry = Mapping[str, tuple[float, float | None]]
"""By column: mean and standard deviation over five seeds; the latter is not printed for safe-CD."""
CONVEX = ("w=[1, 0]", "w=[0.5, 0.5]", "w=[0, 1]", "G, F")
SAFE = ("CD(0.1)", "CD(0.5)", "safe-CD(0.1)", "safe-CD(0.5)")


def _row(*values: tuple[float, float]) -> Entry:
    return dict(zip(CONVEX, values, strict=True))


TABLES: dict[tuple[str, str], dict[str, Entry]] = {
    ("ant", "expert"): {
        "Lin-[1, 0]": _row((1089.56, 27.60), (729.61, 10.94), (369.66, 11.93), (12.91, 0.03)),
        "Lin-[0.5, 0.5]": _row((584.69, 18.29), (689.23, 12.74), (793.77, 23.10), (13.05, 0.04)),
        "Lin-[0, 1]": _row((88.83, 1.53), (1221.97, 26.71), (2355.10, 53.65), (12.25, 0.03)),
        "FairDICE": _row((617.17, 19.68), (682.65, 20.06), (748.13, 30.64), (13.04, 0.06)),
        "ESR-IQL [1, 0]": _row((1296.49, 30.66), (811.82, 14.71), (327.15, 6.20), (12.96, 0.03)),
        "ESR-IQL [0.5, 0.5]": _row((85.54, 1.61), (1243.33, 17.07), (2401.12, 34.37), (12.23, 0.02)),
        "ESR-IQL [0, 1]": _row((87.32, 3.82), (1240.07, 19.36), (2392.82, 40.01), (12.25, 0.04)),
        "AET-ESR [0.5, 0.5]": {"w=[0.5, 0.5]": (1067.22, 6.81), "G, F": (13.04, 0.12)},
        "AETDICE": _row((816.78, 61.16), (949.73, 22.02), (1082.68, 85.08), (13.69, 0.05)),
    },
    ("ant", "amateur"): {
        "Lin-[1, 0]": _row((869.42, 27.99), (636.55, 10.38), (403.67, 17.70), (12.77, 0.03)),
        "Lin-[0.5, 0.5]": _row((540.80, 29.59), (623.84, 13.05), (706.89, 29.54), (12.85, 0.04)),
        "Lin-[0, 1]": _row((138.07, 6.21), (875.34, 22.25), (1612.61, 50.02), (12.31, 0.02)),
        "FairDICE": _row((509.52, 12.81), (638.80, 26.01), (768.09, 54.61), (12.87, 0.07)),
        "ESR-IQL [1, 0]": _row((1570.58, 17.03), (876.82, 9.37), (183.06, 3.94), (12.57, 0.03)),
        "ESR-IQL [0.5, 0.5]": _row((98.57, 14.41), (976.31, 13.21), (1854.05, 37.46), (12.11, 0.12)),
        "ESR-IQL [0, 1]": _row((88.11, 2.58), (977.25, 13.05), (1866.40, 27.70), (12.01, 0.02)),
        "AETDICE": _row((610.17, 46.86), (654.87, 7.66), (699.56, 31.71), (12.96, 0.03)),
    },
    ("walker2d", "expert"): {
        "Lin-[1, 0]": _row((718.58, 23.50), (675.69, 40.14), (632.80, 93.83), (13.02, 0.13)),
        "Lin-[0.5, 0.5]": _row((279.96, 41.59), (1856.50, 202.64), (3433.03, 443.57), (13.76, 0.06)),
        "Lin-[0, 1]": _row((10.28, 1.19), (7292.20, 402.27), (14574.12, 805.61), (11.91, 0.07)),
        "FairDICE": _row((307.14, 15.98), (1733.19, 97.94), (3159.25, 207.63), (13.78, 0.04)),
        "ESR-IQL [1, 0]": _row((689.95, 85.09), (772.39, 123.46), (854.84, 328.36), (13.21, 0.25)),
        "ESR-IQL [0.5, 0.5]": _row((10.53, 1.45), (7366.92, 326.81), (14723.31, 654.99), (11.94, 0.10)),
        "ESR-IQL [0, 1]": _row((12.35, 0.83), (6765.08, 427.43), (13517.81, 854.75), (12.02, 0.10)),
        "AETDICE": _row((246.26, 70.02), (2566.75, 850.14), (4887.23, 1637.10), (13.87, 0.78)),
    },
    ("walker2d", "amateur"): {
        "Lin-[1, 0]": _row((540.87, 11.01), (491.55, 24.05), (442.23, 44.79), (12.38, 0.11)),
        "Lin-[0.5, 0.5]": _row((227.71, 13.15), (2780.73, 199.93), (5333.75, 402.39), (14.01, 0.09)),
        "Lin-[0, 1]": _row((8.37, 0.86), (8119.82, 251.87), (16231.27, 504.44), (11.81, 0.08)),
        "FairDICE": _row((261.07, 18.87), (1143.11, 77.84), (2025.16, 160.95), (13.17, 0.09)),
        "ESR-IQL [1, 0]": _row((176.32, 25.68), (149.61, 26.89), (122.91, 31.93), (9.94, 0.41)),
        "ESR-IQL [0.5, 0.5]": _row((42.31, 11.21), (6710.95, 614.79), (13379.58, 1237.66), (13.20, 0.22)),
        "ESR-IQL [0, 1]": _row((39.94, 6.93), (6607.13, 427.73), (13174.33, 861.51), (13.16, 0.12)),
        "AETDICE": _row((277.03, 42.64), (3376.26, 532.50), (6475.49, 1102.24), (14.37, 0.08)),
    },
}
"""Convex F at c = (1, 1) (paper: tab:results_ant_expert and the three after it; AET-ESR from tab:mo_ant)."""


def _by_rho(method: str, *values: tuple[float, float | None]) -> dict[str, Entry]:
    """A row of the paper is one method trained for each column in turn: here a row each."""
    return {f"{method}{name}": {name: value} for name, value in zip(SAFE, values, strict=False)}


def _cloning(*values: tuple[float, float | None]) -> dict[str, Entry]:
    return {"cloning": dict(zip(SAFE, values, strict=False))}


EFFICIENCY: dict[str, dict[str, Entry]] = {
    "walker2d": {
        **_cloning((0.051, 0.043), (1.766, 0.453), (15.440, None), (18.680, None)),
        **_by_rho("ESR-IQL ", (0.128, 0.120), (4.136, 0.728)),
        **_by_rho("AETDICE ", (0.107, 0.060), (4.432, 1.270)),
        "AETDICE safe-CD(0.1)": {"CD(0.1)": (0.330, 0.043), "safe-CD(0.1)": (16.272, None)},
        "AETDICE safe-CD(0.5)": {"CD(0.5)": (4.456, 0.826), "safe-CD(0.5)": (19.572, None)},
    },
    "halfcheetah": {
        **_cloning((0.139, 0.092), (3.686, 0.838)),
        **_by_rho("ESR-IQL ", (1.516, 0.561), (22.010, 6.660)),
        **_by_rho("AETDICE ", (12.842, 2.570), (45.768, 6.580)),
    },
}
"""Cobb-Douglas with the alive bonus (paper: tab:results_walker_cd, tab:results_halfcheetah).

The paper's ESR-DICE is AETDICE with linear G. It does not say of which quality its data is. Its safe-CD
scores cannot come from the formula that it prints.
"""


def paper_rows(scene: Scene) -> dict[str, Entry]:
    """What the paper has for a table; nothing for c = (2, 1), for distance alone and for the unstable."""
    if isinstance(scene, Convex):
        return TABLES[scene.body, scene.quality] if scene.scale == (1.0, 1.0) else {}
    known = isinstance(scene, Efficiency) and scene.bonus and scene.quality != "unstable"
    return EFFICIENCY[scene.body] if known else {}
