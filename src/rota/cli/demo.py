"""`rota demo`: the guided demonstration, which is loaded only when it is asked for."""

import importlib
from typing import Annotated

from cyclopts import Parameter

from rota.cli.errors import Failed

MODULE = "rota.demo"


def demo(
    *folder: Annotated[
        str, Parameter(allow_leading_hyphen=True, help="A new folder, which is kept; without it, none is.")
    ],
) -> int:
    """Tell what Rota does, on a database of its own."""
    try:
        module = importlib.import_module(MODULE)
    except ModuleNotFoundError as error:
        if error.name != MODULE:
            raise
        raise Failed("The demonstration is not part of this installation; see the documentation.") from None
    result = module.main(list(folder))
    return result if isinstance(result, int) else 0
