"""From sound to words and sound events: voice activity, recogniser, cross-checks."""
