"""The four ARM environments, and the base class that they share."""
