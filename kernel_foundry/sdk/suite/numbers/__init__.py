"""The field's numbers, as functions of plain figures: one file each, with its source."""
