"""Figures without thresholds: what starts, first turns and restores take, and what an idle release costs."""
