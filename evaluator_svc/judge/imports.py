"""What a template of judges imports of torch.compile before they are forked."""


def import_compiler() -> None:
    """Import it now; it starts no thread and opens no device.

    A judge that does not compile imports what follows a graph with the first task that it admits:
    that takes longer than torch itself, and most tasks were admitted before.
    """
    import torch._inductor.async_compile
    import torch._inductor.compile_fx
    import torch.export._trace  # noqa: F401
