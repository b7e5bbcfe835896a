"""A pass over one object: gather facts, decide, append, act, write status. What to do is decided in `domain`."""
