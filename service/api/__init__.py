"""The service over HTTP: its calls, their documents and their description."""
