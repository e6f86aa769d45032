"""One case a file: what is measured, beside what, and the goal."""
