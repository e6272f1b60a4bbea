"""Exports saved episodes to the formats of other tools: logs of Inspect, and parquet."""
