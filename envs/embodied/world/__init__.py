"""Implements the procedural house: rooms, receptacles, objects with states, tasks and frames."""
