"""The table of features and networks, made by running small experiments."""
