"""Reports as one self-contained HTML file: of a run (the page in `page/`), and of a suite."""
