"""Which links live, and over which of them each switch sends: weights, schedules, failures."""
