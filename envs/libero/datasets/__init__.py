"""The tasks of LIBERO, and demonstrations for training."""
