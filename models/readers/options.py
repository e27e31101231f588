"""The options that the readers share: how many devices, and how much memory each has."""

from partita.models.document import validate
from partita.models.errors import InvalidInput
from partita.models.machines import MAX_DEVICES, Device


def checked_devices(devices: int) -> int:
    """Refuse a number of devices that no cluster can have.

    Raises
    ------
    InvalidInput
        When it is not between 1 and 100000.
    """
    if not 1 <= devices <= MAX_DEVICES:
        raise InvalidInput.at("", f"devices: between 1 and {MAX_DEVICES} are possible", str(devices), "option")
    return devices


def memory_in_bytes(memory: int | str) -> int:
    """Read the memory of a device, in bytes or as text with a unit.

    Raises
    ------
    InvalidInput
        When it is neither.
    """
    try:
        return validate(Device, {"memory_bytes": memory}).memory_bytes
    except InvalidInput as error:
        fault = error.faults[0]
        raise InvalidInput.at("", f"memory_bytes: {fault.detail}", fault.value, "option") from None
