"""The DAG files as Airflow parses them, with no database and no connection."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.airflow import conftest as airflow_home

if TYPE_CHECKING:
    from airflow.dag_processing.dagbag import DagBag

DAGS = Path(__file__).resolve().parents[2] / "dags"

__all__ = ["airflow_home"]


@pytest.fixture(scope="session")
def bag() -> DagBag:
    """Every DAG of the repository."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Airflow's own, on import
        from airflow.dag_processing.dagbag import DagBag

        return DagBag(dag_folder=str(DAGS), bundle_path=DAGS, bundle_name="dags")
