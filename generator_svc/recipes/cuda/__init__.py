"""CUDA kernels of the recipes: vector loads, rows in registers, warp shuffles, register tiles."""

from generator_svc.recipes.cuda.matmul_recipe import CudaMatmulRecipe
from generator_svc.recipes.cuda.row_recipe import CudaRowRecipe

__all__ = ["CudaMatmulRecipe", "CudaRowRecipe"]
