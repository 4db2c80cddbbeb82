"""The report split: kept from all that is learned or chosen, and only where a log has no environment."""

from dataclasses import replace

import numpy as np
import pytest
from support.training import TINY, parameters, tiny_episodes, tiny_run

from aetdice import InputError, TrainingConfig
from aetdice.learning.inputs import set_aside

LOG = {"origin": {"file": "a log"}}


def test_a_tenth_of_a_log_is_kept_and_nothing_of_other_data():
    few = tiny_episodes()
    many = few.select(np.arange(len(few)).repeat(2))
    config = TrainingConfig()
    assert set_aside(many, config)[1] is None
    assert set_aside(replace(many, origin={"env": "fair-taxi"}), config)[1] is None
    assert set_aside(replace(few, **LOG), config)[1] is None
    rest, kept = set_aside(replace(many, **LOG), config)
    assert (len(rest), len(kept)) == (90, 10)
    rows = np.sort(np.concatenate([rest.returns, kept.returns]), axis=0)
    np.testing.assert_array_equal(rows, np.sort(many.returns, axis=0))
    assert len(set_aside(few, config.adapted({"trainer.report": 0.5}))[1]) == 25
    with pytest.raises(InputError, match=r"a report of 0\.999 leaves none of the 50 episodes"):
        set_aside(few, config.adapted({"trainer.report": 0.999}))


@pytest.mark.trains
@pytest.mark.parametrize("algorithm", [pytest.param("aetdice", marks=pytest.mark.slow), "bc"])
def test_nothing_of_the_report_reaches_a_policy(algorithm):
    data = tiny_episodes()
    config = TINY.adapted({"trainer.report": 0.2, "trainer.holdout": 0.2 if algorithm == "aetdice" else 0.0})
    kept = set_aside(data, config)[1]
    ours = np.isin(np.arange(len(data)), np.random.default_rng(19).permutation(50)[:10])
    np.testing.assert_array_equal(kept.returns, data.returns[ours])
    rewards = np.where(np.repeat(ours, data.lengths)[:, None], 100 + data.rewards, data.rewards)
    run, other = (
        tiny_run(data=one, config=config, algorithm=algorithm)
        for one in (data, replace(data, rewards=rewards))
    )
    for mine, theirs in zip(parameters(run), parameters(other), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert run.request["split"]["report"] == 10
    assert sum(run.request["split"].values()) == 50
