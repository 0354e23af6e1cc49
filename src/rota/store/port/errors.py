"""What a store raises."""

from rota.domain.errors import RotaError, WrongSetting


class TooManyElements(RotaError):
    """A call handed a store more elements than its `elements_max`; hand over smaller batches."""


class StoreUnavailable(RotaError):
    """The store cannot be reached or used at the moment; the message says why. Try again."""


class UnknownAddress(StoreUnavailable, WrongSetting):
    """What is given as the database's address is none that Rota can use; the message says what to write."""
