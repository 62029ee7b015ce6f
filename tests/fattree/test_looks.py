"""The looks of load balancers can be drawn by matplotlib, and are all different."""

from matplotlib.colors import is_color_like
from matplotlib.lines import Line2D

from fattree.policies import POLICIES
from fattree.texts.looks import LOOKS, OWN


def test_every_load_balancer_has_a_look_of_its_own() -> None:
    looks = [*LOOKS.values(), *OWN]
    for look in looks:
        assert look.colour.startswith("#") and is_color_like(look.colour)
        assert look.marker in Line2D.markers
        assert look.line in Line2D.lineStyles

    assert set(POLICIES) <= set(LOOKS)
    assert len(set(looks)) == len(looks)
