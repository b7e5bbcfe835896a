"""The operator's door to the bucket, for the ledger and for checkpoints. Never runs in a sandbox.

`s3` is the one place that knows an S3 client.
"""
