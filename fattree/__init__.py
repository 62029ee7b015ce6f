"""The vocabulary that all packages speak: fat-trees, weights, schedules, traffic, experiments.

Pure; imports nobody of ours.
"""
