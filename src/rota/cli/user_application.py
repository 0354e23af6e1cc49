"""The application that `MODULE:app` names, with the settings that it is run with."""

import importlib
import sys
from pathlib import Path

from rota.application import Rota
from rota.cli.errors import Usage
from rota.cli.options import load_config, load_settings
from rota.config import Settings
from rota.domain.errors import RotaError


def load_application(reference: str | None, **options: object) -> tuple[Rota, Settings]:
    """The named application, or one that has only `echo`, set up with the options that were given.

    What is not given is as the application's own module says, else as the environment says, else as the file says,
    whose jobs it is told of. Raises `Usage`, `InvalidRequest`, and `WrongSetting` for a job that is declared twice.
    """
    load_settings(**options)  # what is wrong with them is told before a module is blamed for it
    application = Rota() if reference is None else _import(reference)
    given = {name: value for name, value in options.items() if value is not None}
    settings = load_settings(**(application.own_settings() | given))
    application.configure(settings)
    config = load_config()
    application.declare_jobs(config.jobs, source=config.source)
    return application, settings


def _import(reference: str) -> Rota:
    module_name, _, attribute = reference.partition(":")
    if not _is_path(module_name) or not _is_path(attribute):
        raise Usage(f"{reference!r} names no application; write MODULE:app, such as orders.jobs:app.")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: object = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module_name}.".startswith(f"{error.name}."):
            raise Usage(f"{reference}: There is no module {error.name!r} in {here} or installed.") from None
        raise Usage(f"{reference}: The module cannot be imported: {error}.") from None
    except (ImportError, SyntaxError, RotaError) as error:
        raise Usage(f"{reference}: The module cannot be imported: {error}.") from None
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise Usage(f"{reference}: The module {module_name!r} has no {attribute!r}.")
        found = getattr(found, name)
    if not isinstance(found, Rota):
        raise Usage(f"{reference}: {attribute!r} is of type {type(found).__name__}; it has to be a Rota.")
    return found


def _is_path(text: str) -> bool:
    return all(part.isidentifier() for part in text.split("."))
