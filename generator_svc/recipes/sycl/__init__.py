"""SYCL kernels of the recipes: styles that differ in speed on CPU devices."""

from generator_svc.recipes.sycl.matmul_recipe import SyclMatmulRecipe
from generator_svc.recipes.sycl.row_recipe import SyclRowRecipe

__all__ = ["SyclMatmulRecipe", "SyclRowRecipe"]
