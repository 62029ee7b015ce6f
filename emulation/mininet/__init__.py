"""The Mininet network: switch processes, host agents in network namespaces, veth links, gRPC."""
