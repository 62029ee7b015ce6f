"""`ofan report`: the paper's evaluation, run or resumed, as one self-contained page with its data."""
