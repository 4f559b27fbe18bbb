"""What all engine families share: sessions, model manifests, child processes."""
