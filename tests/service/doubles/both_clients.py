"""The synchronous and the asynchronous client with the same face, so that one test covers both."""

import asyncio

from partita.service.client import AsyncClient, Client

FORMS = ("sync", "async")


class Waited:
    """The asynchronous client, whose calls are waited for; iterators become lists."""

    def __init__(self, url, **options):
        self._runner = asyncio.Runner()
        self._client = AsyncClient(url, **options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._runner.run(self._client.close())
        self._runner.close()

    def __getattr__(self, name):
        call = getattr(self._client, name)

        def waited(*arguments, **named):
            given = call(*arguments, **named)
            return self._runner.run(given if asyncio.iscoroutine(given) else _all(given))

        return waited


async def _all(items):
    return [item async for item in items]


def client(form, url, **options):
    """Make a client of a form."""
    return (Client if form == "sync" else Waited)(url, **options)
