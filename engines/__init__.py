"""COMPUTE: bytes and arrays in, contracts out. No services, no environment."""
