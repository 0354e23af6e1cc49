"""The command line: `main` is what the script `rota` calls."""

from rota.cli.application import main

__all__ = ["main"]
