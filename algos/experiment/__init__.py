"""Reads and runs recipes, which describe how a model is trained (`visenv train`)."""

from .command import train
from .experiment import run_recipe
from .recipe import Recipe
from .recipe_files import read_recipe, read_sweep, recipe_path
from .sweep import run_sweep

__all__ = [
    "Recipe",
    "read_recipe",
    "read_sweep",
    "recipe_path",
    "run_recipe",
    "run_sweep",
    "train",
]
