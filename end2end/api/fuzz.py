"""Requests made up from the API document (schemathesis), as an owner, a member, with
a key that only reads, and without a key: no internal error, no status that the document
does not name, no bad input accepted, no answer in another form.

    python end2end/api/fuzz.py                    as long as a stage of the tests may take
    python end2end/api/fuzz.py --max-examples 200 deeper

What follows is given to schemathesis as it is. The binary is $WEIR_BIN."""

import json
import os
import random
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "sdk"))

from document import Document, example
from people import Person
from weir import Weir
from widen import widened

# Seconds for each caller. Refusals are fast, so the anonymous caller needs few.
CALLERS = {"owner": 40, "member": 14, "reader": 10, "anonymous": 6}
CHECKS = ",".join([
    "not_a_server_error", "status_code_conformance", "content_type_conformance",
    "response_headers_conformance", "response_schema_conformance",
    "negative_data_rejection", "unsupported_method", "ignored_auth",
])
# Left out, each with its reason.
LEFT_OUT = {
    # Everything else needs the organization that it would delete.
    "delete_organization": "ends the organization of the run",
    "delete_project": "ends the project of the run",
    "delete_organization_project": "ends the project of the run",
    "change_project_organization": "takes the project of the run away",
    # Tries are slowed down by address, for all callers of this machine: after the
    # first few every answer is the same refusal.
    "login": "tries are limited",
    "accept_invitation": "tries are limited",
}
# Callers who are not staff find nothing there, with any method.
OF_STAFF = ["list_instance_organizations"]


def main(arguments):
    deep = bool(arguments)
    seed = os.environ.get("WEIR_SEED") or str(random.randrange(1 << 30))
    print(f"seed {seed}; again with WEIR_SEED={seed}", flush=True)
    failed = 0
    for caller, seconds in CALLERS.items():
        # An instance for each: what one deletes is not missing for the next.
        with Weir(os.environ["WEIR_BIN"]) as weir:
            chosen = arguments if deep else ["--max-time", str(seconds)]
            print(f"\n--- {caller}", flush=True)
            failed += run(weir, caller, [*chosen, "--seed", seed]) != 0
    print(f"{len(CALLERS) - failed} passed, {failed} failed")
    return failed > 0


def run(weir, caller, arguments):
    document = Document(weir.url)
    ids = objects(weir, document)
    headers = authorization(weir, caller, ids)
    with tempfile.TemporaryDirectory(prefix="weir-fuzz-") as directory:
        path = os.path.join(directory, "openapi.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(widened(document.json, ids), file)
        program = os.path.join(os.path.dirname(sys.executable), "schemathesis")
        names = [*LEFT_OUT, *(OF_STAFF if caller == "member" else [])]
        left_out = [part for name in names for part in ("--exclude-operation-id", name)]
        command = [
            program, "run", path, "--url", weir.url, "--checks", CHECKS, *left_out, *headers,
            "--generation-database", "none", "--warnings", "off", "--output-sanitize", "true",
            "--no-color", *arguments,
        ]
        return subprocess.run(command, cwd=directory, stdin=subprocess.DEVNULL).returncode


def authorization(weir, caller, ids):
    """The header of the caller. The anonymous one has none."""
    if caller == "anonymous":
        return []
    if caller == "member":
        person = Person.invited(weir, "member@mail.example", 1)
        ids["members"].append(person.uuid)
        key = person.key()
    elif caller == "reader":
        key = Person.signing_in(weir, "owner@weir.example").key("read")
    else:
        key = weir.instance["personal_api_key"]
    return ["--header", f"Authorization: Bearer {key}"]


def objects(weir, document):
    """One object of every collection that makes some, and who is there already."""
    spare = Person.invited(weir, "spare@mail.example", 1)
    organization, project = weir.instance["organization_id"], weir.instance["project_id"]
    ids = {
        "organizations": [organization, "@current"],
        "projects": [project],
        "users": ["@me"],
        "members": [spare.uuid],
        "personal_api_keys": ["@current", "nothing"],
    }
    # What is about an insight comes after it.
    operations = sorted(document.operations(), key=lambda one: "insight" in (example(one[2]) or {}))
    for method, path, operation in operations:
        name = path.strip("/").split("/")[-1]
        is_create = method == "post" and "201" in operation["responses"]
        is_public = operation["security"] == []
        if not is_create or is_public or name.startswith("{") or name in ids:
            continue
        address = path.replace("{organization_id}", organization)
        address = address.replace("{project_id}", str(project))
        # What belongs to an object that is made here comes after.
        if "{" not in address:
            body = example(operation) or {}
            if "insight" in body:
                body = body | {"insight": ids["insights"][0]}
            if "target_value" in body:
                body = body | {"target_value": "owner@weir.example"}
            made = weir.call(address, body)
            ids.setdefault(name, []).append(made["id"])
    export = f"/api/organizations/{organization}/batch_exports/{ids['batch_exports'][0]}"
    ids["backfills"] = [weir.call(f"{export}/backfills/", {})["backfill_id"]]
    return ids


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
