"""The policies: what answers an environment, from a script to a vision-language model.

This folder is the package ``visenv.policies``. It imports the core, never ``visenv.envs`` or
``visenv.algos``; ``visenv.registration`` names what is in it by strings.
"""

if __name__ != "visenv.policies":
    raise ImportError("import visenv.policies, not policies: this folder is that package")
