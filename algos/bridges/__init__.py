"""visenv inside other trainers: TRL and verl, and our episodes in their shape.

Each folder is imported for itself, where its trainer is installed; docs/plug_ins.md tells which way
in fits what.
"""
