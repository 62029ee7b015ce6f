"""A network that stays up for commands: its server, its client, and the command line of links."""
