"""The framework for published experiments: registry, campaigns, capacity search, published data."""
