"""What is seen in sampled pictures: labels, embeddings, on-screen text."""
