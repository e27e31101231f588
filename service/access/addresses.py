"""Which addresses are those of this machine alone."""

import ipaddress
from urllib.parse import urlsplit


def is_loopback(host: str) -> bool:
    """Tell whether an address is reached from this machine alone."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def names_loopback(header: str) -> bool:
    """Tell whether a header Host, with or without a port, names such an address."""
    try:
        return is_loopback(urlsplit(f"//{header}").hostname or "")
    except ValueError:
        return False
