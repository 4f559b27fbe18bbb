"""Typed timeline of one video, and the mining of what causes what on it; numpy and scipy only."""
