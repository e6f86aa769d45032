"""The tests mirror the package; `tests/conftest.py` says what each may ask for."""
