"""The object store: key layout, the S3 adapter, content-addressed artifacts."""
