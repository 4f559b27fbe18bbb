"""What stages hand to each other: frozen, valid once built, free of services and models."""
