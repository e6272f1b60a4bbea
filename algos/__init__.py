"""The algorithms: one folder each, from advantages and loss to the trainer.

This folder is the package ``visenv.algos``. It imports the core, never ``visenv.envs`` or
``visenv.policies``; ``visenv.registration`` names what is in it by strings.
"""

if __name__ != "visenv.algos":
    raise ImportError("import visenv.algos, not algos: this folder is that package")
