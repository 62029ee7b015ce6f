"""The state that the control plane writes: tables, meters, profiles, value sets, replication."""
