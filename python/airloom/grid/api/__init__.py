"""The grid manager over HTTP: a REST API described by OpenAPI, and a web page that uses it."""
