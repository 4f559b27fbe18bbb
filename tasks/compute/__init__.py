"""What runs in the child process of each stage: files in, engine, files out.

Nothing here imports Prefect, the database or the store client: a decoding child stays small, and
a child that is killed holds no connection.
"""
