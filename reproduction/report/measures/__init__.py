"""What figures measure beyond a run's record: functions of one scenario, run on workers."""
