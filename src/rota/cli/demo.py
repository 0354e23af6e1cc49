"""`rota demo`: the guided demonstration, which is loaded only when it is asked for."""

import importlib
from typing import Annotated

from cyclopts import Parameter

from rota.cli.errors import Failed, Usage

MODULE = "rota.demo"
EDIT = "edit"


def demo(
    *story: Annotated[
        str,
        Parameter(
            allow_leading_hyphen=True,
            help="edit: what an edit does; without it, two weeks of a report. A new folder behind it, with a slash in "
            "its name (./kept), is kept.",
        ),
    ],
) -> int:
    """Tell what Rota does, on a database of its own."""
    if story and story[0] != EDIT and story[0].isidentifier():
        raise Usage(
            f"There is no story {story[0]!r}: `rota demo` tells two weeks of a report, `rota demo {EDIT}` what an "
            f"edit does. A folder to keep is written with a slash: ./{story[0]}."
        )
    try:
        module = importlib.import_module(MODULE)
    except ModuleNotFoundError as error:
        if error.name != MODULE:
            raise
        raise Failed("The demonstration is not part of this installation; see the documentation.") from None
    result = module.main(list(story))
    return result if isinstance(result, int) else 0
