"""A PyTRIO service on 127.0.0.1: the SDK talks to it unmodified, and its small model learns."""
