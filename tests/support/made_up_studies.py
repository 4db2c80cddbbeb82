"""What a page is told of studies: a made-up one of three rows over α, and the strangers that are kept."""

import json
from pathlib import Path

import numpy as np

from aetdice.evaluation.estimates import estimate
from aetdice.studies.score_tables import sheets_of
from aetdice.studies.strangers.report import overview

HOSTILE = "</script><img src=x onerror=window.hacked=1> {{data}} 'more' \" \u2028"
ROOT = Path(__file__).parents[2]
MADE = {"commit": None, "date": "2026-11-18", "device": "cpu", "versions": {"jax": "0"}, "facts": {}}


def told_of(name):
    """ESR is won by the row trained for it, SER by cloning; one of two parts is done."""
    alphas = {"A ESR": (0.0, 4.0), "A BSR 0.5": (0.5, 3.0), "A SER": (1.0, 2.0)}
    rows = {row: _row(alpha, level) for row, (alpha, level) in alphas.items()}
    cloned = {"params": {}, "diagnostics": {}, "trained": None, **_rolled_out(1.0, 9.0)}
    rows["cloning"] = {
        **_row(0.0, 1.0),
        "algorithm": "bc",
        "objective": None,
        "column": None,
        "optimum": None,
    }
    rows["cloning"] |= {"settings": [cloned], "selected": 0, "best": 0, "shown": 0}
    rows["A ESR"] |= {"column": "ESR", "paper": {"ESR": [1.5, None]}}
    rows["A SER"]["column"] = "SER"
    best = {"value": 10.0, "scores": {"ESR": 10.0, "SER": 10.0}, "mean_returns": [5.0, 5.0]}
    summary = {
        "title": name,
        "horizon": 4,
        "interval": True,
        "columns": {"ESR": "ESR", "SER": "SER"},
        "objectives": ["one", "two"],
        "data": {"episodes": 10, "steps": 40, "sha256": "0" * 64},
        "rows": rows,
        "references": {"best": {**best, "quantities": {"shares": {"up": 0.9}}}},
    }
    return {
        "study": name,
        "asks": "Does it?",
        "answer": "",
        "parts": ["aetdice", "rest"],
        "made": {"aetdice": {**MADE, "seconds": 3.0}},
        "tables": [{**summary, "sheets": [sheet.record() for sheet in sheets_of(summary)]}],
        "sheets": [],
        "notes": [],
    }


def told_strangers():
    """Those whose results are kept."""
    kept = json.loads((ROOT / "experiments" / "results" / "strangers.json").read_text(encoding="utf-8"))
    found = overview(kept["probes"])
    return {
        "study": "strangers",
        "asks": "How does it do?",
        "answer": found.answer,
        "parts": list(kept["made"]),
        "made": kept["made"],
        "tables": [],
        "sheets": [sheet.record() for sheet in found.sheets],
        "notes": found.notes,
    }


def _row(alpha, level):
    settings = [_setting({"beta": beta}, level - beta, level / 2) for beta in (0.5, 0.1)]
    chosen = {"selected": 0, "best": 1, "shown": 1}
    return {
        "algorithm": "aetdice",
        "objective": f"BSR[alpha={alpha:g}]: F",
        "column": None,
        "optimum": "best",
        "data_score": 0.1,
        "rule": "by a claim",
        "paper": {},
        "settings": settings,
        **chosen,
    }


def _setting(params, esr, ser):
    known = {"claimed_value": esr, "effective_sample_size": 0.5}
    gaps = [(esr - 1) / 9, None]
    rolled_out = _rolled_out(esr, ser)
    return {
        "params": params,
        "diagnostics": known,
        "trained": rolled_out["scores"]["ESR"],
        "twin": 1.0,
        "gap_shares": gaps,
        **rolled_out,
    }


def _rolled_out(esr, ser):
    def scored(value):
        return estimate([{"value": value, "low": value - 0.1, "high": value + 0.1}] * 2).record()

    returns = np.random.default_rng(0).normal(esr, 1.0, (30, 2)).round(2)
    return {
        "scores": {"ESR": scored(esr), "SER": scored(ser)},
        "mean_returns": returns.mean(axis=0).tolist(),
        "variances": None,
        "quantities": {"shares": {"up": {"mean": esr / 10, "sd": None}}},
        "samples": {"returns": returns.tolist()},
    }
