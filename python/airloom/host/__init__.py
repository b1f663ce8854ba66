"""The host: its programs, description, caches, privileges, namespaces and interfaces."""
