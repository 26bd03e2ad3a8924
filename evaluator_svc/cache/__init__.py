"""What an evaluator keeps on disk, sealed by its key: object code, admissions, peaks."""
