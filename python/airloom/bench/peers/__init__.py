"""What Airloom is measured beside, where it is installed on this machine."""
