"""What is measured: each a program of its own, started afresh for every round."""
