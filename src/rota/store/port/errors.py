"""What a store raises."""

from rota.domain.errors import RotaError


class TooManyElements(RotaError):
    """A call handed a store more elements than its `elements_max`; hand over smaller batches."""


class StoreUnavailable(RotaError):
    """The store cannot be reached or used at the moment; the message says why. Try again."""
