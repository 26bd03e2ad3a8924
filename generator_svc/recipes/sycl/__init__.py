"""SYCL kernels of the recipes: styles that differ in speed on CPU devices."""
