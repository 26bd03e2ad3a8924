"""What a judge imports only when it admits its first task, and a template of judges before that."""


def import_ahead(*, with_compiler: bool) -> None:
    """Import it now; neither starts a thread nor opens a device.

    Args:
        with_compiler: Whether torch.compile will be used, beside the tracing for operator graphs.
    """
    import torch._dynamo
    import torch.export._trace
    import torch.fx.experimental.symbolic_shapes

    if with_compiler:
        import torch._inductor.async_compile
        import torch._inductor.compile_fx  # noqa: F401
