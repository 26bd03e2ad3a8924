"""SYCL kernels of the recipes: styles that differ in speed on CPU devices."""

from generator_svc.recipes.sycl.matmul_recipe import MatmulRecipe
from generator_svc.recipes.sycl.row_recipe import RowRecipe

__all__ = ["MatmulRecipe", "RowRecipe"]
