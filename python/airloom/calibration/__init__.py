"""What a kind of node does to packets on a machine: measured, stored, and used to correct figures."""
