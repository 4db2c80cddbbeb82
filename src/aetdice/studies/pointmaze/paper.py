"""The paper's MO-PointMaze table."""

COLUMNS = {"ESR": "ESR", "BSR 0.5": "BSR[alpha=0.5]", "SER": "SER", "LSR": "LSR"}
"""Headings, and what the scores are called in results."""

Entry = tuple[tuple[float, float], ...]
"""Mean and standard deviation over three seeds, in the order of the columns."""

PAPER: dict[str, dict[str, Entry]] = {
    "pointmaze-2obj": {
        "AETDICE ESR": ((6.67, 0.08), (11.90, 0.17), (8.73, 0.08), (164.86, 6.68)),
        "AETDICE BSR 0.5": ((5.91, 0.32), (11.93, 0.11), (9.01, 0.04), (211.79, 12.29)),
        "AETDICE SER": ((4.06, 0.05), (11.82, 0.05), (9.74, 0.02), (284.05, 1.42)),
        "OptiDICE [0.5, 0.5]": ((3.64, 0.01), (8.77, 0.02), (3.81, 0.02), (417.01, 3.13)),
        "OptiDICE [1, 0]": ((3.63, 0.02), (8.71, 0.04), (3.82, 0.03), (409.62, 5.70)),
        "OptiDICE [0.75, 0.25]": ((3.67, 0.02), (8.91, 0.19), (4.53, 1.19), (415.88, 6.09)),
        "ESR-IQL": ((6.56, 0.01), (11.59, 0.03), (8.56, 0.02), (153.78, 1.49)),
    },
    "pointmaze-3obj": {
        "AETDICE ESR": ((6.79, 0.15), (11.76, 0.10), (10.15, 0.02), (86.05, 0.46)),
        "AETDICE BSR 0.5": ((4.72, 0.24), (12.04, 0.07), (11.14, 0.05), (120.34, 1.77)),
        "AETDICE SER": ((-0.19, 0.03), (11.43, 0.03), (12.81, 0.02), (213.78, 1.38)),
        "OptiDICE [1/3, 1/3, 1/3]": ((-0.26, 0.07), (10.61, 0.06), (12.27, 0.01), (176.92, 1.63)),
        "OptiDICE [1, 0, 0]": ((-0.34, 0.03), (2.49, 0.06), (2.17, 0.03), (203.20, 4.01)),
        "OptiDICE [0.75, 0.25, 0]": ((-0.38, 0.01), (2.41, 0.04), (-2.20, 0.03), (198.15, 3.22)),
        "ESR-IQL": ((7.20, 0.03), (12.03, 0.04), (10.17, 0.02), (87.16, 0.94)),
    },
}
"""By maze and row (paper: tab:full-comparison-stacked), on the paper's own layouts, which it does not print.

Its linear rows are its linear scalarisation. For three objectives it prints the weights of two; they
are read as [1/3, 1/3, 1/3], [1, 0, 0] and [0.75, 0.25, 0].
"""
