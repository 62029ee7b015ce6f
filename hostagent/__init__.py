"""The host: its state and its rules as pure functions, then their sockets."""
