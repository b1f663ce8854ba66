"""Routes: static, along shortest paths, or by daemons; what they reach and when links are up."""
