"""The processes of agents: their sockets and their confinement."""
