"""The vocabulary that every other package speaks: fat-trees, weights, schedules, traffic, experiments. Pure; imports nobody of ours."""
