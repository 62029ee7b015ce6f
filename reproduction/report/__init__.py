"""`ofan report`: the paper's evaluation, run or resumed, as one page with its data."""
