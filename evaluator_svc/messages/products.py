"""Names of the operators of an exported graph that are matrix products or convolutions."""

from typing import Final

PRODUCTS: Final = frozenset({
    "linear", "matmul", "mm", "addmm", "bmm", "baddbmm", "einsum", "conv1d", "conv2d", "conv3d",
    "convolution", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
})  # fmt: skip
"""Without name space and overload. Attention and recurrent layers are none of them."""
