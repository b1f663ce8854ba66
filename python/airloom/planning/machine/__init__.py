"""What a plan takes of this machine: processors, guests, containers and features of its kernel."""
