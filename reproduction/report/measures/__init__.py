"""Measures of figures beyond a run's record: functions of one scenario, run on workers."""
