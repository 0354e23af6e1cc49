"""Rota as a library, in the process that uses it."""

from rota.application.rota import Rota

__all__ = ["Rota"]
