"""What both forms of the client are told about the server, and how they send requests to it."""

import math
from dataclasses import dataclass
from time import monotonic

import httpx

from partita import __version__
from partita.service.client.errors import ServiceError
from partita.service.client.steps import Open, Patience, Reply, Send

TIMEOUT_S, RETRIES = 30.0, 8


@dataclass(frozen=True, slots=True)
class Connection:
    """Where the server is, and how patient the client is.

    Attributes
    ----------
    url, key
        The server's address, and the API key; None for none.
    timeout_s
        How long the network may take to connect, to send, or to be silent.
    retries
        How often in a row a call is tried again where the server cannot be reached or has no room.
    """

    url: str
    key: str | None
    timeout_s: float
    retries: int

    def __post_init__(self) -> None:
        """Refuse an address that is none.

        Raises
        ------
        ServiceError
            When it does not begin with http:// or https://, or names no host.
        """
        try:
            url = httpx.URL(self.url)
        except httpx.InvalidURL:
            url = httpx.URL("")
        if url.scheme not in ("http", "https") or not url.host:
            raise ServiceError(f"{self.url!r} is no address of a server; write http://HOST:PORT")
        if self.key is not None and not (self.key.isascii() and self.key.isprintable() and self.key.strip()):
            raise ServiceError("the API key is empty or holds characters that no key has")

    @property
    def base_url(self) -> str:
        """The address with a slash at its end, so that paths go on from it."""
        return self.url.rstrip("/") + "/"

    @property
    def headers(self) -> dict[str, str]:
        """What every request says."""
        agent = {"User-Agent": f"partita/{__version__}"}
        return agent if self.key is None else {**agent, "Authorization": f"Bearer {self.key}"}

    def patience(self, within_s: float | None = None) -> Patience:
        """Begin a call that has so many seconds; None for as long as it takes."""
        return Patience(self.retries, None if within_s is None else monotonic() + within_s)

    def timeout(self, step: Send | Open) -> httpx.Timeout:
        """Give how long the network may be silent in a step."""
        most_s = math.inf if step.most_s is None else step.most_s
        waits_s = step.wait_s if isinstance(step, Send) else 0.0
        return httpx.Timeout(min(self.timeout_s, most_s), read=min(self.timeout_s + waits_s, most_s))


def reply_of(response: httpx.Response, *, whole: bool) -> Reply:
    """Give what came back; ``whole`` where its body was read."""
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Reply(response.status_code, headers, response.content if whole else b"")


def reason_of(error: httpx.HTTPError) -> str:
    """Say what went wrong with a connection."""
    return str(error) or type(error).__name__
