"""The operator's process: wires real things together and passes them down. Decides nothing about agents."""

from alineod.app.process import main

__all__ = ["main"]
