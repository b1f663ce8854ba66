"""From a checked scenario to its plan: interfaces, segments, addresses, routes, link settings."""
