"""The live laboratory: its handles, its server for other terminals, its interactive prompt."""
