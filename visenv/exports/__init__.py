"""Saved episodes in the formats of other tools: logs of Inspect, and parquet."""
