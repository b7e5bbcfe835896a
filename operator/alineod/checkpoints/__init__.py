"""Archives of a sandbox's files and the copies kept of them.

`archive` and `store` run in sandboxes and import nothing beyond the standard library, msgspec and zstandard;
`retention` runs in the operator only.
"""
