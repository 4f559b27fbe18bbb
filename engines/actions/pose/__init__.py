"""People in pictures: found, their 33 landmarks, and followed over time."""
