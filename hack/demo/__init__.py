"""The demonstration: what it installs, what it shows, and the commands it does both with. Standard library only.

The end-to-end tests and the bench stand on the same commands, so that a person, a test and the demo install one way.
"""
