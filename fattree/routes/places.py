"""Which links an entry of `[failures]` means: a link between switches, a host's, or a switch's."""

from fattree.experiment.model import Place
from fattree.shape.addressing import host_named, link_named, switch_named
from fattree.shape.topology import FatTree


def places(tree: FatTree, place: Place) -> tuple[list[int], list[int]]:
    """Return the links between switches, and the hosts, that a place means; raises AddressError."""
    if place.link is not None:
        return [link_named(tree, place.link)], []

    if place.host is not None:
        return [], [host_named(tree, place.host)]

    switch = switch_named(tree, place.switch or "")
    links = [tree.link_at(switch, port) for port in tree.ports(switch)]
    hosts = [
        tree.host_at(switch, port)
        for port, link in zip(tree.ports(switch), links, strict=True)
        if link is None
    ]
    return [link for link in links if link is not None], hosts
