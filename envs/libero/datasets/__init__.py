"""Loads the tasks of LIBERO, and demonstrations for training."""
