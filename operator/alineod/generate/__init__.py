"""Writes every file that follows from the sources: CRDs, the chart's copy and roles, reference pages, the manifest.

`python -m alineod.generate` writes them, `--check` only compares. Nothing imports this package.
"""
