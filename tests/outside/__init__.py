"""Measurements and publications of others, as tests: the judges that share no rule with us.

Figures stand in TOML files beside the tests, each with its source and settings: facts, no code. A
change of the model that moves away from them turns red.
"""
