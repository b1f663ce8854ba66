"""From a checked scenario to a plan: the gate, its rules, addresses, routes, media, admission of slices."""
