"""What a swarm is and what to do next, as pure functions over frozen records. No I/O, no clock, no logging."""
