"""The store: Postgres tables, their migrations' entry point, and one query module per noun.

Base tables lie in the schema ``core``; users read the views of the schema ``reel``.
"""
