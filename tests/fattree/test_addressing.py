"""Names, addresses and interfaces, and their inverses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fattree.errors import AddressError
from fattree.shape import addressing
from fattree.shape.topology import FatTree
from tests.fattree.brute_force import even_ks

trees = even_ks.map(FatTree)
K4 = FatTree(4)


def test_examples_of_the_design() -> None:
    assert addressing.host_name(K4, 2) == "h0_1_0"
    assert addressing.dotted(addressing.host_ip(K4, 2)) == "10.0.1.2"
    assert addressing.dotted(addressing.switch_ip(K4, K4.core(0, 1))) == "10.4.1.2"
    assert addressing.dotted(addressing.switch_ip(K4, K4.agg(3, 1))) == "10.3.3.1"
    assert addressing.colons(addressing.host_mac(K4, 2)) == "02:00:0a:00:01:02"
    assert addressing.interface_name(K4, K4.agg(0, 1), 3) == "a0_1-3"


@given(trees, st.data())
def test_hosts_are_found_by_name_and_address(tree: FatTree, data: st.DataObject) -> None:
    host = data.draw(st.integers(0, tree.hosts - 1))
    assert addressing.host_named(tree, addressing.host_name(tree, host)) == host
    assert addressing.host_of_ip(tree, addressing.host_ip(tree, host)) == host


@given(trees, st.data())
def test_switches_and_links_are_found_by_name(tree: FatTree, data: st.DataObject) -> None:
    switch = data.draw(st.integers(0, tree.switches - 1))
    link = data.draw(st.integers(0, tree.links - 1))
    name = addressing.link_name(tree, link)
    assert addressing.switch_named(tree, addressing.switch_name(tree, switch)) == switch
    assert addressing.link_named(tree, name) == link
    assert addressing.link_named(tree, "-".join(reversed(name.split("-")))) == link


@pytest.mark.parametrize("k", [2, 4, 16, 128])
def test_addresses_are_distinct_and_interfaces_short(k: int) -> None:
    tree = FatTree(k)
    switches = [tree.edges - 1, 2 * tree.edges - 1, tree.switches - 1]
    hosts = addressing.host_ip(tree, np.arange(tree.hosts))
    ips = [
        *hosts.tolist(),
        *(addressing.switch_ip(tree, switch) for switch in range(tree.switches)),
    ]
    assert len(set(ips)) == len(ips)
    assert max(len(addressing.interface_name(tree, switch, k)) for switch in switches) <= 15
    assert len(addressing.host_interface_name(tree, tree.hosts - 1)) <= 15


def test_arrays_of_hosts_have_the_addresses_of_each() -> None:
    assert addressing.host_ip(K4, np.arange(16)).tolist() == [
        addressing.host_ip(K4, host) for host in range(16)
    ]


@pytest.mark.parametrize("address", ["10.0.0.1", "10.0.0.4", "10.4.0.2", "10.0.2.2", "11.0.0.2"])
def test_addresses_of_nobody_belong_to_no_host(address: str) -> None:
    a, b, c, d = map(int, address.split("."))
    assert addressing.host_of_ip(K4, a << 24 | b << 16 | c << 8 | d) is None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("edge0_9-agg0_0", "no switch edge0_9 at k = 4: edge switches are edge0_0 to edge3_1"),
        ("agg0_0-core2_0", "no switch core2_0 at k = 4: core switches are core0_0 to core1_1"),
        ("edge0_1-agg1_0", "no link edge0_1-agg1_0: edge0_1 leads up to agg0_0 to agg0_1"),
        ("agg0_0-core1_0", "no link agg0_0-core1_0: agg0_0 leads up to core0_0 to core0_1"),
        ("core0_0-core0_1", "cores are not linked to each other"),
        ("edge0_0-edge0_0", "edge0_0 leads up to"),
        ("edge0_0", "expected SWITCH-SWITCH"),
        ("h0_0_0", r'^h0_0_0 is a host\'s link, .* \[failures\] may, by host = "h0_0_0"$'),
        ("edge0_1 - h0_1_1", r'^edge0_1 - h0_1_1 is a host\'s link, .* host = "h0_1_1"$'),
        ("h9_0_0-edge0_0", "there is no host h9_0_0"),
        ("spine0_0-agg0_0", "'spine0_0' is not a switch's name: expected edgePOD_I"),
    ],
)
def test_wrong_links_are_named_with_what_was_expected(name: str, message: str) -> None:
    with pytest.raises(AddressError, match=message):
        addressing.link_named(K4, name)


@pytest.mark.parametrize("name", ["h0_1", "h4_0_0", "h0_2_0", "h0_0_2", "H0_0_0", "h0_0_٣", ""])
def test_wrong_hosts_are_refused(name: str) -> None:
    with pytest.raises(AddressError, match=r"no host|not a host's name"):
        addressing.host_named(K4, name)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("agg0_0-core0_9", "core0_1"),
        ("agg9_0-core0_1", "agg3_0"),
        ("Edge0_1-agg0_0", "edge0_1"),
        ("leaf0_1-agg0_0", "edge0_1"),
        ("edge0-0-agg0_0", ""),
        ("edge0_0_agg0_1", "edge0_0-agg0_1"),
        ("edge0_1-agg1_1", "edge0_1-agg0_1"),
        ("h0_0_9-edge0_0", "h0_0_1"),
        ("nothing0_0-agg0_0", ""),
    ],
)
def test_a_wrong_link_is_told_the_nearest(name: str, meant: str) -> None:
    with pytest.raises(AddressError) as raised:
        addressing.link_named(K4, name)

    assert str(raised.value).endswith(f"(did you mean {meant}?)") == bool(meant)
    assert ("did you mean" in str(raised.value)) == bool(meant)


@pytest.mark.parametrize(
    ("name", "meant"), [("h0_0_9", "h0_0_1"), ("host3_1_0", "h3_1_0"), ("h7-0-1", "h3_0_1")]
)
def test_a_wrong_host_is_told_the_nearest(name: str, meant: str) -> None:
    with pytest.raises(AddressError, match=rf"\(did you mean {meant}\?\)$"):
        addressing.host_named(K4, name)


@given(trees, st.text(alphabet="edgaghostcor0123456789_-/", max_size=20))
def test_a_suggested_name_exists(tree: FatTree, text: str) -> None:
    try:
        addressing.switch_named(tree, text)
    except AddressError as error:
        _, _, meant = str(error).partition("(did you mean ")
        if meant.startswith("h"):
            addressing.host_named(tree, meant.removesuffix("?)"))
        elif meant:
            addressing.switch_named(tree, meant.removesuffix("?)"))


@given(trees, st.text(max_size=20))
def test_any_text_is_a_link_or_one_error(tree: FatTree, text: str) -> None:
    try:
        assert 0 <= addressing.link_named(tree, text) < tree.links
    except AddressError as error:
        assert "\n" not in str(error)
