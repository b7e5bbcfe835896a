"""The process in the agent's container: drives the harness, journals its events, serves turns, gates them.

It is PID 1 there and is started hundreds of times on one machine, so it imports the standard library, msgspec and h11
and nothing else. It knows nothing of Kubernetes, of the bucket or of the ledger.
"""
