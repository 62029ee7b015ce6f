import os
import select
import socket
import subprocess
import sys
from contextlib import suppress

import pytest

from emulation.errors import NetworkError
from emulation.mininet import kernel
from emulation.mininet.kernel import ip_batch, own_namespace
from emulation.mininet.switch_processes import set_link
from fattree.experiment.model import Scenario
from fattree.shape.addressing import interface_name

pytestmark = pytest.mark.root


def test_every_link_is_a_veth_pair_with_our_names_and_large_frames(network, tree, interfaces):
    lines = interfaces()
    assert len(lines) == 1 + 2 * tree.links + tree.hosts
    assert {"e0_0-1", "e0_0-4", "a3_1-3", "c1_1-4"} < lines.keys()
    assert all("mtu 9000" in line and ",UP" in line for name, line in lines.items() if name != "lo")


def test_links_join_what_the_topology_says(network, tree, interfaces):
    lines = interfaces()
    for link in range(tree.links):
        lower, upper = (interface_name(tree, *end) for end in tree.link_ends(link))
        assert f"{lower}@{upper}:" in lines[lower] or f"{upper}@{lower}:" in lines[upper]


def test_hosts_have_one_interface_without_addresses(network):
    said = network["h3_1_1"].cmd("ip -o addr show").strip().splitlines()
    assert [line.split()[1] for line in said] == []
    assert "h3_1_1-eth0" in network["h3_1_1"].cmd("ip -o link")


def flags(line):
    return line.partition("<")[2].partition(">")[0].split(",")


def test_a_link_goes_down_at_both_ends_and_up_again(network, tree, interfaces):
    for up in (False, True):
        set_link(Scenario(fabric={"k": 4}), 0, up)
        lines = interfaces()
        assert [("UP" in flags(lines[name])) for name in ("e0_0-3", "a0_0-1")] == [up, up]


def test_frames_that_a_link_swallows_are_counted_also_when_it_is_mended(namespace):
    ip_batch(
        ["link add near type veth peer name far", "link set near up", "link set far up"],
    )
    books = kernel.InterfaceBooks()
    before = books.read(swallows=True)["near"]
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as link:
        link.bind(("near", 3))
        for frames in (True, False, True, False):
            kernel.swallow(["near"], frames, microseconds=0)
            with suppress(OSError):
                link.send(bytes(60))
    after = books.read(swallows=True)["near"]
    assert (after.refused - before.refused, after.sent - before.sent) == (2, 2)


def test_books_go_on_where_an_interface_is_made_anew(namespace):
    make = ["link add near type veth peer name far", "link set near up", "link set far up"]
    books = kernel.InterfaceBooks()
    for _ in range(2):
        ip_batch(make)
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as link:
            link.bind(("near", 3))
            link.send(bytes(60))
        books.read()
        ip_batch(["link del near"])
    total = books.read()["near"]
    assert total.sent + total.refused == 2, "a link that has only just come up may refuse one"


def test_the_machine_keeps_its_own_interfaces(namespace, tree, interfaces):
    from emulation.mininet.topology import fat_tree

    ip_batch(["link add e0_0-1 type veth peer name foreign"])
    before = interfaces()
    with own_namespace(), fat_tree(tree):
        assert "foreign" not in interfaces()
    assert interfaces() == before


def test_a_namespace_is_left_even_after_an_error(namespace):
    before = os.readlink("/proc/thread-self/ns/net")
    with pytest.raises(ZeroDivisionError), own_namespace():
        assert os.readlink("/proc/thread-self/ns/net") != before
        raise ZeroDivisionError
    assert os.readlink("/proc/thread-self/ns/net") == before


def test_ip_errors_are_one_line(namespace):
    with pytest.raises(NetworkError, match=r"^ip: .*nowhere.*$"):
        ip_batch(["link set nowhere up"])


def test_without_root_is_one_line(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(NetworkError, match="needs root"):
        kernel.refuse_if_unable()


def test_without_mininet_is_one_line(monkeypatch):
    monkeypatch.setattr(kernel, "find_spec", lambda _name: None)
    with pytest.raises(NetworkError, match="apt install mininet"):
        kernel.refuse_if_unable()


def test_nothing_is_left_after_kill_9(namespace):
    script = """
import time
from emulation.mininet.kernel import own_namespace
from emulation.mininet.topology import fat_tree
from fattree.shape.topology import FatTree
with own_namespace(), fat_tree(FatTree(4)) as network:
    print(network["h0_0_0"].pid, flush=True)
    time.sleep(60)
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    shell = int(process.stdout.readline())
    pidfd = os.pidfd_open(shell)
    process.kill()
    process.wait()
    process.stdout.close()
    assert select.select([pidfd], [], [], 10)[0], "a Mininet shell has survived"
    os.close(pidfd)
