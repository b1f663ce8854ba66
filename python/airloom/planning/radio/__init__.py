"""Media, radios and movement: their settings for the engine, channels, interference and bridges."""
