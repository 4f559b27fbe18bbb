"""WHEN: the DAG, its triggers and the command line."""
