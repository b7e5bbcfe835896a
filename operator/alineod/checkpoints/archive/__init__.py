"""The archive of a home and a workspace: one zstd stream of one tar, written and read with flat memory.

Its members, in this order and no other:

    alineo/head.json       Head: whose files, of which turn
    alineo/journal.jsonl   the turn's own journal records; empty for a fork
    home/...               the home directory, each directory before what is in it
    workspace/...          /workspace, the same way
    alineo/manifest.json   Manifest: what was packed, skipped and excluded

Any tar that knows pax and GNU's sparse form 1.0 can unpack it. The other way round is strict on purpose: a member that
`pack` cannot have written makes the whole archive Damaged.
"""
