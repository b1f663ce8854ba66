"""Open vSwitches: their bridges, flow tables, loops, and the flow space of slices."""
