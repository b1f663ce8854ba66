"""NET's chains of nodes (University of Stuttgart, ISCC 2007), wired and wireless, and their ideals."""
