"""Many runs: on processes or a cluster, kept in a store, shown in tables.

Nothing here changes a result.
"""
