"""The shared laboratory: one engine with the testbed's medium, which runs of several slices join."""
