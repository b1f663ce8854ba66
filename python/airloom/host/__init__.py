"""The hosting machine: programs, description, caches, privileges, namespaces, interfaces."""
