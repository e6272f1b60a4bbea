"""Contains the policies, which play environments: from scripts to vision-language models.

This folder is the package ``visenv.policies``. It imports the core, never ``visenv.envs`` or
``visenv.algos``; ``visenv.registration`` names its content by strings.
"""

if __name__ != "visenv.policies":
    raise ImportError("import visenv.policies, not policies: this folder is that package")
