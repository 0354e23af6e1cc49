"""A folder for the databases, in memory where there is such a disk."""

from tests.contract.conftest import folder

__all__ = ["folder"]
