"""Makers of workload files: traces, GOAL schedules and training steps become graphs."""
