"""A client of the service, in a synchronous and an asynchronous form; it needs neither solvers nor a web server.

>>> from partita.service.client import Client
>>> with Client("http://127.0.0.1:8000") as client:  # doctest: +SKIP
...     answer = client.plan(problem)
"""

from partita.service.client.asynchronous import AsyncClient
from partita.service.client.errors import ServiceError
from partita.service.client.synchronous import Client

__all__ = ["AsyncClient", "Client", "ServiceError"]
