"""FRR's configuration of each switch of a fabric: eBGP on every link, after RFC 7938.

Cores share an AS, and so do the aggs of a pod; each edge has its own. So no path goes down and up
again: a switch ignores a path with its own AS, and longer paths lose against shorter ones.
"""

from collections.abc import Iterator

from fattree.shape.addressing import dotted, host_ip, switch_ip, switch_name
from fattree.shape.topology import FatTree, Tier

# Private AS numbers of four bytes (RFC 6996): enough for every fabric.
CORES = 4_200_000_000
AGGS = 4_200_001_000
EDGES = 4_200_100_000
# Shared address space (RFC 6598) for links, two addresses each (RFC 3021): hosts have 10.0.0.0/8.
LINKS = 100 << 24 | 64 << 16

TEMPLATE = """\
frr defaults datacenter
hostname {name}
log stdout informational
!
router bgp {number}
 bgp router-id {router_id}
 ! Paths of equal length are used together, whichever AS numbers are in them.
 bgp bestpath as-path multipath-relax
 ! The prefix below is the hosts' network: no route to it need be in the kernel.
 no bgp network import-check
 neighbor FABRIC peer-group
 neighbor FABRIC remote-as external
 ! A link that is up and carries nothing is found by BFD, a dead link by its carrier.
 neighbor FABRIC bfd
 neighbor FABRIC timers 3 9
 neighbor FABRIC timers connect 1
{neighbors} address-family ipv4 unicast
{networks}  neighbor FABRIC route-map WEIGHT out
  maximum-paths 64
 exit-address-family
!
! A route carries the number of its own next hops as bandwidth: the neighbor weighs it by that.
route-map WEIGHT permit 10
 set extcommunity bandwidth num-multipaths
"""

ZEBRA = """\
hostname {name}
log stdout informational
!
! The kernel drops a dead next hop from its nexthop objects, and FRR 8.4 does not put it back when
! the link returns: routes with next hops of their own are written anew.
no zebra nexthop kernel enable
"""


def as_number(tree: FatTree, switch: int) -> int:
    """Return the number of a switch's autonomous system (RFC 7938, section 5.2.1)."""
    match tree.tier(switch):
        case Tier.EDGE:
            return EDGES + switch
        case Tier.AGG:
            return AGGS + tree.position(switch)[0]
        case Tier.CORE:
            return CORES


def link_addresses(link: int) -> tuple[int, int]:
    """Return the addresses of a link's lower and upper end, of one /31."""
    return LINKS + 2 * link, LINKS + 2 * link + 1


def link_ports(tree: FatTree, switch: int) -> Iterator[tuple[int, int, int]]:
    """Yield (port, own address, neighbor's address) of a switch's links to other switches."""
    for port in tree.ports(switch):
        link = tree.link_at(switch, port)
        if link is not None:
            lower, upper = link_addresses(link)
            is_lower = tree.link_ends(link)[0].switch == switch
            yield (port, lower, upper) if is_lower else (port, upper, lower)


def bgpd(tree: FatTree, switch: int) -> str:
    """Return the configuration of a switch's bgpd."""
    neighbors = "".join(
        f" neighbor {dotted(far)} peer-group FABRIC\n" for _, _, far in link_ports(tree, switch)
    )
    return TEMPLATE.format(
        name=switch_name(tree, switch),
        number=as_number(tree, switch),
        router_id=dotted(switch_ip(tree, switch)),
        neighbors=neighbors,
        networks=f"  network {edge_network(tree, switch)}\n"
        if tree.tier(switch) is Tier.EDGE
        else "",
    )


def configurations(tree: FatTree, switch: int) -> dict[str, str]:
    """Return the configuration of each of a switch's daemons, in the order of their start."""
    name = switch_name(tree, switch)
    return {
        "zebra": ZEBRA.format(name=name),
        "bfdd": f"hostname {name}\nlog stdout informational\n",
        "bgpd": bgpd(tree, switch),
    }


def edge_network(tree: FatTree, edge: int) -> str:
    """Return the network of an edge's hosts, `10.0.1.0/24`."""
    return f"{dotted(host_ip(tree, edge * tree.hosts_per_edge) & ~0xFF)}/24"
