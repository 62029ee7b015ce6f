"""What figures measure beyond a run's record: a function of one scenario each."""
