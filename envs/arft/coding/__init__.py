"""Contains ArftCoding: repairing images with code, then answering."""
