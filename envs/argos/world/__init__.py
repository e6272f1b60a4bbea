"""Creates the procedural worlds of Argos: scenes and videos with exact masks and events."""
