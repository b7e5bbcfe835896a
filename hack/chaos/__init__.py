"""Kills leaders of a real release while clients write, and counts afterwards what the bucket still knows.

`plan` decides what goes wrong and `judge` what came of it; both are pure. The others act.
"""
