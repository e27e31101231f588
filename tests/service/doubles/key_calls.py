"""Keys for applications without a network."""

from partita.service.access.key_store import KeyStore

JSON = {"Content-Type": "application/json", "Prefer": "respond-async"}


def key_store(app):
    return KeyStore(app.state.jobs.store.engine)


def headers_with(app, name, role="solve", share_with=None):
    """Make a key, and give the headers of its requests."""
    return {**JSON, "Authorization": f"Bearer {key_store(app).create(name, role, share_with).text}"}
