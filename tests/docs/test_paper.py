"""The map of the paper is complete, and what it names exists."""

import re

import pytest
from support.pages import ROOT, text_of

PAGE = "docs/paper.md"
NAMED = re.compile(r"\[`(\w+)`\]\(\.\./([\w./-]+\.py)\)")
TAG = re.compile(r"\bD(\d+)\b")
SOURCES = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "src").rglob("*.py"))}
LABELS = """
    sec:AET def:augmented_reward prop:equivalence eq:AET-obj eq:aet_occ_form eq:aet_obj eq:bf_init eq:bf_flow
    eq:aetdice_primal_main eq:aetdice_dual_final eq:bsr eq:aetdice_primal_app eq:aet_obj_app eq:slack_app
    eq:bf0_app eq:bft_app eq:lagrangian_raw eq:L_with_w eq:wstar eq:phi_conj_substitution
    eq:aetdice_final_dual alg:aetdice
    fig:momdp_example fig:momdp_example_app fig:environments nonmarkovian quantile_plot_Taxi fig:behaviors
    fig:taxi_env fig:pointmaze_2obj fig:pointmaze_3obj fig:dataset pointmaze_evaluaton fig:beta_ablation
    tab:mo_ant sample-table-indented tab:full-comparison-stacked tab:results_ant_expert
    tab:results_ant_amateur tab:results_walker_expert tab:results_walker_amateur tab:results_walker_cd
    tab:results_halfcheetah tab:aetdice_hparams tab:aetdice_hparams_mujoco
    app:example_ser_esr_linear app:aetdice_dual app:aetdice_primal app:aetdice_lagrangian app:aetdice_swap
    app:aetdice_policy app:aetdice_concrete app:time_augmentation app:env_details app:additional_exp
    app:ablation_beta app:implementation app:limitations
"""
"""Every label of the paper that stands for an equation, an algorithm, a table, a figure or an appendix."""


@pytest.mark.parametrize("label", LABELS.split())
def test_label_is_on_the_map(label):
    assert f"`{label}`" in text_of(PAGE)


@pytest.mark.parametrize(("name", "path"), sorted(set(NAMED.findall(text_of(PAGE)))))
def test_named_function_or_test_is_where_the_map_says(name, path):
    source = (ROOT / path).read_text(encoding="utf-8")
    assert re.search(rf"^(?:async def|def|class) {name}\b", source, re.MULTILINE)


def rows() -> dict[int, str]:
    """The deviations by number."""
    return {
        int(number): row for number, row in re.findall(r"^\| D(\d+) \| (.*) \|$", text_of(PAGE), re.MULTILINE)
    }


def test_deviations_are_numbered_without_gaps():
    assert sorted(rows()) == list(range(1, len(rows()) + 1))


def test_tags_in_the_code_point_to_the_page_and_stand_on_it():
    for path, source in SOURCES.items():
        tags = {int(number) for number in TAG.findall(source)}
        assert tags <= set(rows()), path
        assert not tags or "docs/paper.md" in source, f"{path}: say where the tags are explained"


@pytest.mark.parametrize("number", sorted(rows()))
def test_deviation_is_tagged_where_it_happens(number):
    [(_, path)] = NAMED.findall(rows()[number].split(" | ")[-1])
    assert number in {int(found) for found in TAG.findall((ROOT / path).read_text(encoding="utf-8"))}
