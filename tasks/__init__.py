"""EFFECTS: one file per stage; read inputs, call an engine, write outputs."""
