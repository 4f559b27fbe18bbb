"""What the command line does, one module per command; `flows.cli` only parses."""
