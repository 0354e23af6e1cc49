"""The demonstration that `make demo` runs: a sales report on real processes and a real file."""

import tempfile
from pathlib import Path

from rota.demo.story import tell
from rota.domain.errors import FieldError, InvalidRequest


def main(options: list[str]) -> int:
    """`rota demo [FOLDER]`: the exit code is 0 where every check held, 1 where one did not, 2 for a bad folder."""
    if len(options) > 1 or any(option.startswith("-") for option in options):
        raise InvalidRequest(
            FieldError("folder", "Give at most one folder, which is kept: rota demo FOLDER.")
        )
    if options:
        folder = Path(options[0])
        if folder.exists() and any(folder.iterdir()):
            raise InvalidRequest(FieldError("folder", f"The folder {folder} is not empty; give a new one."))
        folder.mkdir(parents=True, exist_ok=True)
        return tell(folder.resolve())
    with tempfile.TemporaryDirectory(prefix="rota-demo-") as temporary:
        return tell(Path(temporary))
