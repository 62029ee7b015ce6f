"""The processes of agents: their sockets, and what confines them."""
