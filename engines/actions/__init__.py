"""What people do: skeletons, the network over them, and segments at three granularities."""
