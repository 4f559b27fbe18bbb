"""How Reelgraph is deployed: the embedded stack, container images and cluster manifests."""
