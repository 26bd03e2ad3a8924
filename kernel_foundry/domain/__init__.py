"""The types all parts share: frozen, typed, free of transport and of hardware.

Import them from their own module (`kernel_foundry.domain.task`); one concept in each file.
"""
