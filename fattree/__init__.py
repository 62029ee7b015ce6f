"""The vocabulary that all packages speak: fat-trees, weights, schedules, traffic, experiments.

Pure; imports no other package of ours. Its rooms, from the ground up: `files` and `shape`,
`experiment`, `demand`, `routes`, then `generators`, `records` and `texts` beside one another.
"""
