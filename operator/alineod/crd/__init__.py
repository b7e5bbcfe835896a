"""The custom resources as frozen records: what a person writes, what a person reads, and how both look as a CRD.

The records are the one source: `alineod.crd.schema` turns them into the CRDs, `alineod.generate` into files. Knows
nothing of pods, of the ledger or of any client.
"""
