"""Judges, teacher models and encoders: shared, batched and cached."""
