"""Output ports: queues, pauses and shared memory."""
