"""Archives of a sandbox's files, the copies kept of them, and the bucket they go to.

`archive` and `store` run in sandboxes and import nothing beyond the standard library, msgspec and zstandard;
`bucket_s3` runs in the operator only and is the one place that knows an S3 client.
"""
