"""The API document of a running service: fetched, and read by operation."""

import json
import urllib.request

METHODS = ("get", "post", "put", "patch", "delete")


class Document:
    """The document and its operations."""

    def __init__(self, url):
        with urllib.request.urlopen(f"{url}/api/schema/", timeout=120) as answer:
            self.json = json.load(answer)

    def operations(self):
        """Method, path and operation of all."""
        for path, item in self.json["paths"].items():
            for method in METHODS:
                if method in item:
                    yield method, path, item[method]

    def at(self, path, method):
        """An operation, or none."""
        return self.json["paths"].get(path, {}).get(method)

    def resolved(self, value):
        """What a reference leads to; everything else is itself."""
        if "$ref" not in value:
            return value
        found = self.json
        for part in value["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        return found


def collection(path):
    """The word before the last id of a path, such as `domains`."""
    parts = path.strip("/").split("/")
    ids = [at for at, part in enumerate(parts) if part.startswith("{")]
    return parts[ids[-1] - 1] if ids else parts[-1]


def example(operation):
    """The example of an operation's body, or none."""
    body = operation.get("requestBody")
    return body and body["content"]["application/json"]["example"]
