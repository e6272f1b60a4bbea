"""This package contains the algorithms, the trainer and the bridges to other trainers.

This folder is the package ``visenv.algos``. It imports the core, never ``visenv.envs`` or
``visenv.policies``. ``visenv.registration`` refers to its contents by strings.
"""

if __name__ != "visenv.algos":
    raise ImportError("import visenv.algos, not algos: this folder is that package")
