"""The sidecar that packs a sandbox's files and uploads them, and the init container that brings them back.

Both run in every sandbox pod, so they import the standard library, msgspec, zstandard and our own small HTTP server,
and nothing else. They hold no key of the bucket: each object is read or written by a grant the operator signed.
"""
