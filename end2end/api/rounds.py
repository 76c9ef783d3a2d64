"""A client made from the API document (openapi-python-client) makes, reads, changes
and deletes one object of every resource of a running service. The client is generated
again each time and is not kept. `clients.py` does the same in TypeScript.

    python end2end/api/rounds.py

The binary is $WEIR_BIN."""

import compileall
import importlib
import json
import os
import subprocess
import sys
import tempfile
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "sdk"))

from document import Document, collection, example
from people import Person
from weir import Weir

# Collections whose objects are not made with a key, and what stands for one.
GIVEN = {
    "users": "the caller",
    "members": "they come by invites",
    "personal_api_keys": "they are made in the web app",
    "persons": "they come from events",
    "runs": "the schedule of an export makes them",
    "groups": "the identity provider of a domain sends them",
    "backfills": "they go with their export",
    "role_memberships": "they go with their role",
    "signup": "needs no key",
    "reset": "needs no key",
    "query": "an answer is no object",
    "shared_dashboards": "needs no key",
}
# Operations that an object may lack.
MAY_LACK = {
    ("invites", "get"): "an invite is looked for in the list",
    ("invites", "patch"): "an invite is replaced by another",
    ("share_links", "get"): "a link is looked for in the list",
    ("share_links", "patch"): "a link is replaced by another",
}


def main():
    with Weir(os.environ["WEIR_BIN"]) as weir, tempfile.TemporaryDirectory() as directory:
        document = Document(weir.url)
        client = Client(weir, document, make(document, directory))
        spare = Person.invited(weir, "spare@mail.example", 1)
        organization = weir.instance["organization_id"]
        ids = {
            "organization_id": organization,
            "project_id": weir.instance["project_id"],
            "user_id": spare.uuid,
        }
        # What a transformation is made from, what a link shares, and what an alert is about.
        for name, path in {
            "plugin_id": "/api/organizations/{organization_id}/pipeline_destinations/",
            "dashboard_id": "/api/projects/{project_id}/dashboards/",
            "insight_id": "/api/projects/{project_id}/insights/",
        }.items():
            create = document.at(path, "post")
            _, made, _ = client.call(create, ids, example(create))
            ids[name] = made.id
        failed = passed = 0
        for base in collections(document):
            try:
                Round(client, document, base, dict(ids)).run()
                passed += 1
                print(f"ok     {base}", flush=True)
            except Exception:
                failed += 1
                print(f"failed {base}\n{traceback.format_exc()}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


def make(document, directory):
    """Generates the client; the package that can be imported."""
    path = os.path.join(directory, "openapi.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(document.json, file)
    tools = os.path.dirname(sys.executable)
    subprocess.run(
        [
            os.path.join(tools, "openapi-python-client"), "generate", "--path", path,
            "--meta", "none", "--output-path", os.path.join(directory, "weir_client"),
            "--fail-on-warning",
        ],
        check=True, cwd=directory, stdin=subprocess.DEVNULL,
        env=os.environ | {"PATH": tools + os.pathsep + os.environ["PATH"]},
    )
    assert compileall.compile_dir(os.path.join(directory, "weir_client"), quiet=1)
    sys.path.insert(0, directory)
    return "weir_client"


def collections(document):
    """Paths of objects with an id at their end, each once; fails for one that nothing
    is known of."""
    for path in document.json["paths"]:
        if path.endswith("}/") and collection(path) not in GIVEN:
            yield path


class Client:
    """Operations of the generated package by their ids."""

    def __init__(self, weir, document, package):
        self.package = package
        module = importlib.import_module(f"{package}.client")
        self.client = module.AuthenticatedClient(
            base_url=weir.url, token=weir.instance["personal_api_key"], timeout=120,
        )
        self.modules = {}
        for _, _, operation in document.operations():
            tag = operation["tags"][0].lower().replace(" ", "_")
            name = f"{package}.api.{tag}.{operation['operationId']}"
            self.modules[operation["operationId"]] = name

    def call(self, operation, ids, body=None):
        """The status and what the client made of the answer."""
        name = operation["operationId"]
        module = importlib.import_module(self.modules[name])
        arguments = {
            parameter["name"]: ids[parameter["name"]]
            for parameter in operation["parameters"] if parameter["in"] == "path"
        }
        if body is not None:
            models = importlib.import_module(f"{self.package}.models")
            kind = "".join(word.capitalize() for word in name.split("_")) + "Input"
            arguments["body"] = getattr(models, kind).from_dict(body)
        answer = module.sync_detailed(client=self.client, **arguments)
        return answer.status_code, answer.parsed, answer.content


class Round:
    """Create, read, list, change, delete; then it is gone."""

    def __init__(self, client, document, path, ids):
        self.client = client
        self.document = document
        self.path = path
        self.base = path[: path.rstrip("/").rindex("/") + 1]
        self.name = path.rstrip("/").split("/")[-1].strip("{}")
        self.collection = collection(path)
        self.ids = ids

    def run(self):
        create = self.operation(self.base, "post")
        body = example(create)
        for field in ("plugin", "insight"):
            if field in body:
                body = body | {field: self.ids[f"{field}_id"]}
        if "target_value" in body:
            body = body | {"target_value": "owner@weir.example"}
        made = self.good(create, 201, body)
        self.ids[self.name] = made.id
        read = self.operation(self.path, "get")
        if read:
            self.same(self.good(read, 200), made)
        listed = self.good(self.operation(self.base, "get"), 200)
        assert made.id in [each.id for each in listed.results], "it is not in the list"
        change = self.operation(self.path, "patch")
        if change:
            changed = self.good(change, 200, example(change))
            assert changed.id == made.id
            for field, value in (example(change) or {}).items():
                shown = changed.to_dict().get(field, value)
                # The client writes times in UTC with a zone.
                if isinstance(shown, str):
                    shown = shown.replace("+00:00", "Z")
                assert shown == value or isinstance(value, dict), f"{field} is {shown}"
        delete = self.operation(self.path, "delete")
        if delete:
            self.good(delete, 204)
            gone = read or delete
            status, answer, _ = self.client.call(gone, self.ids)
            assert (status, answer.code) == (404, "not_found"), "it is not gone"

    def operation(self, path, method):
        found = self.document.at(path, method)
        if found is None:
            assert (self.collection, method) in MAY_LACK, f"{path} has no {method}"
        return found

    def good(self, operation, expected, body=None):
        status, answer, content = self.client.call(operation, self.ids, body)
        assert status == expected, f"{operation['operationId']} answered {status}: {content}"
        assert expected == 204 or answer is not None, "the client cannot read the answer"
        return answer

    def same(self, read, made):
        assert read.to_dict() == made.to_dict(), f"{read} is not {made}"


if __name__ == "__main__":
    sys.exit(main())
