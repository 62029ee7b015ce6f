"""The published names of load balancers, in the place of ours."""

import pytest

from emulation.command_line import names
from fattree.errors import ExperimentError
from fattree.experiment.model import Scenario
from fattree.policies import POLICIES, POLICY_SETS, PUBLISHED
from fattree.texts.experiment_file import parse_experiment


def test_each_published_name_leads_to_a_load_balancer_and_hides_none() -> None:
    assert set(PUBLISHED.values()) <= set(POLICIES)
    assert not set(PUBLISHED) & (set(POLICIES) | set(POLICY_SETS))


@pytest.mark.parametrize("name", PUBLISHED)
def test_experiments_and_scenarios_have_our_names(name: str) -> None:
    slug = PUBLISHED[name]
    assert Scenario(policy=name) == Scenario(policy=slug)
    experiment = parse_experiment(f'policies = ["{name}", "ofan"]', "file.toml")
    assert experiment.policies == (slug, "ofan")


def test_a_load_balancer_by_both_of_its_names_is_given_twice() -> None:
    with pytest.raises(Exception, match="policies names flow twice"):
        parse_experiment('policies = ["flow", "ecmp"]', "file.toml")

    convert = names(tuple(POLICIES), aliases=PUBLISHED)
    with pytest.raises(Exception, match="flow is given twice"):
        convert(None, None, "ecmp,flow")  # type: ignore[arg-type]


def test_the_name_of_no_load_balancer_is_refused_as_it_was_typed() -> None:
    with pytest.raises(ExperimentError, match="no load balancer 'dlb'"):
        Scenario(policy="dlb")
