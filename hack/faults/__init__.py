"""Strikes a swarm that holds an agent in every state at once, and judges from outside what is left of it.

`table`, `scene`, `reading`, `judge`, `report` and `page` are pure; the others act. The same rows run in the end-to-end
tests and, all of them, in `make fault-matrix`.
"""
