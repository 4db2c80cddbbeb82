"""Every method of every study has the same chances: updates, batches, networks, payment and choice."""

import math

import pytest

from aetdice.learning.setup import algorithm_for, readable
from aetdice.studies import STUDIES, mujoco
from aetdice.studies.fair_taxi import PAID_AT_THE_END
from aetdice.studies.merging import edges_of
from aetdice.studies.populations import parts_of
from aetdice.studies.study import Population, Table

ALL = [(name, quick) for name in STUDIES for quick in (False, True)]


def budget(table: Table, population: Population) -> dict:
    """What a population may spend, and on what."""
    config = readable(population.config, population.algorithm)
    stage = config.iql if population.algorithm == "esr-iql" else config.dual
    steps = algorithm_for(population.algorithm, table.horizon, config).steps
    return {
        "values": (steps, stage.batch) if steps else None,
        "network": population.config.network,
        "extraction": population.config.extraction,
        "trainer": population.config.trainer,
        "payment": config.reward if population.algorithm in ("aetdice", "esr-iql") else None,
    }


def tables_of(name: str, quick: bool) -> list[Table]:
    return [table for table in STUDIES[name](quick).tables if table.populations]


@pytest.mark.parametrize(("name", "quick"), ALL)
def test_all_methods_of_a_table_have_one_budget(name, quick):
    for table in tables_of(name, quick):
        assert {p.shows for p in table.populations} == {"selected"}
        own = budget(table, table.populations[0])
        for population in table.populations:
            found = budget(table, population)
            if any(row.name.endswith(PAID_AT_THE_END) for row in population.rows):
                assert found.pop("payment") != own["payment"]  # that is the ablation
            for what, value in found.items():
                if value is not None and own[what] is not None:
                    assert value == own[what], (table.name, population.name, what)


def settings_of(population: Population) -> int:
    return math.prod(len(values) for values in population.grid.values())


@pytest.mark.parametrize(("name", "quick"), ALL)
def test_no_method_has_fewer_settings_to_choose_from_than_aetdice(name, quick):
    for table in tables_of(name, quick):
        own = max(
            settings_of(p) for p in table.populations if p.name in ("aetdice", "alphas-0", "n-from-data")
        )
        for population in table.populations:
            if population.algorithm in ("optidice", "fairdice", "esr-iql"):
                assert settings_of(population) >= own, (table.name, population.name)


def test_grids_reach_beyond_what_was_best_at_their_edges():
    """β of 1 for FairDICE, 3 for OptiDICE in the mazes; 1 and 0.01 on the bodies: in the kept results."""
    for maze in ("pointmaze-2obj", "pointmaze-3obj"):
        grids = STUDIES[maze](False).tables[0].effort.grids
        assert max(grids["fairdice"]["beta"]) >= 10
        assert min(grids["optidice"]["beta"]) <= 0.3
    betas = mujoco.FULL.grids["discounted"]["beta"]
    assert max(betas) >= 10
    assert min(betas) < 0.01


@pytest.mark.parametrize("name", [name for name in STUDIES if STUDIES[name](True).tables])
def test_every_part_says_what_its_result_depends_on(name):
    for part in parts_of(STUDIES[name](True)):
        known = {"table", "horizon", "columns", "dataset", "data_seed", "quality"}
        assert known <= set(part.facts), part.name
        if "environment" in part.facts:
            assert {"slip", "steps"} <= set(part.facts["environment"])
        else:
            assert {"body", "behaviour", "reference"} <= set(part.facts)
        if not part.name.endswith("reference"):
            assert {"algorithm", "rows", "grid", "seeds", "config"} <= set(part.facts), part.name
            assert part.facts["config"]["iql"]["n_step"] is None


def test_a_setting_on_the_edge_of_its_grid_is_named():
    tried = [{"params": {"beta": beta, "expectile": 0.9}} for beta in (0.1, 1.0, 10.0)]
    found = [edges_of(tried, which) for which in range(3)]
    assert found == [{"beta": "smallest"}, {}, {"beta": "largest"}]
    assert edges_of(tried[:1], 0) == {}


@pytest.mark.parametrize("quick", [False, True])
def test_the_safety_rows_differ_in_safety_alone(quick):
    for table in tables_of("cobb-douglas", quick):
        by_name = {population.name: population for population in table.populations}
        if "safe" not in by_name:
            assert "alone" not in by_name
            continue
        safe, alone = by_name["safe"], by_name["alone"]
        assert (safe.grid, safe.config, safe.algorithm) == (alone.grid, alone.config, alone.algorithm)
        for with_safety, without in zip(safe.rows, alone.rows, strict=True):
            assert without.name == with_safety.name + mujoco.LEFT_OUT
            assert without.objective.aggregation == with_safety.objective.aggregation
            assert without.objective.utility.name == with_safety.objective.utility.parts[0].name
            assert len(with_safety.objective.utility.parts) == 2


@pytest.mark.parametrize("name", ["ant", "walker2d", "cobb-douglas"])
def test_bodies_have_single_steps_and_whole_episodes_beside_n_of_the_horizon(name):
    for table in tables_of(name, False):
        by_name = {population.name: population for population in table.populations}
        steps = {n: by_name[n].config.dual.n_step for n in ("aetdice", "n-1", "n-from-data")}
        assert steps == {"aetdice": table.horizon, "n-1": 1, "n-from-data": None}
        assert by_name["episodes"].algorithm == "episode-weighting"
