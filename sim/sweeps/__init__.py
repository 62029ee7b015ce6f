"""Many runs: on processes or a cluster, kept in a store, told in tables.

Nothing here changes a result.
"""
