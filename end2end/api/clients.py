"""Clients in TypeScript, generated from the API document, compiled, and used: they make,
read, change and delete objects of a running service. `rounds.py` does the same with a
client in Python, for every resource.

    python end2end/api/clients.py

The binary is $WEIR_BIN, the generators are those of end2end/package.json."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / ".." / "sdk"))

from document import Document
from weir import Weir

MODULES = (HERE / ".." / "node_modules").resolve()
# Seconds for one program, on a busy machine.
PATIENCE = 180
# The generator's command without its input, and the program that uses its client.
CLIENTS = {
    "openapi-typescript": (["openapi-typescript", "openapi.json", "-o", "schema.ts"], "fetch"),
    "@hey-api/openapi-ts": (["openapi-ts", "-i", "openapi.json", "-o", "client"], "hey"),
}


def main():
    passed = failed = 0
    with Weir(os.environ["WEIR_BIN"]) as weir, tempfile.TemporaryDirectory() as directory:
        directory = Path(directory)
        shutil.copytree(HERE / "typescript", directory, dirs_exist_ok=True)
        (directory / "node_modules").symlink_to(MODULES)
        # Node finds what is imported without its extension in such modules only.
        (directory / "package.json").write_text('{"type": "commonjs"}')
        (directory / "openapi.json").write_text(json.dumps(Document(weir.url).json))
        for command, _ in CLIENTS.values():
            run(directory, *command)
        run(directory, "tsc", "-p", ".")
        instance = weir.instance
        caller = [weir.url, instance["personal_api_key"], instance["organization_id"]]
        for name, (_, program) in CLIENTS.items():
            try:
                node(directory, f"compiled/{program}.js", *caller)
                passed += 1
                print(f"ok     {name}", flush=True)
            except AssertionError:
                failed += 1
                print(f"failed {name}\n{traceback.format_exc()}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


def run(directory, program, *arguments):
    """Runs a program of the npm packages."""
    node(directory, MODULES / ".bin" / program, *arguments)


def node(directory, *arguments):
    done = subprocess.run(
        ["node", *arguments], cwd=directory, stdin=subprocess.DEVNULL, timeout=PATIENCE,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )
    assert done.returncode == 0, f"{arguments[0]}:\n{done.stdout}"


if __name__ == "__main__":
    sys.exit(main())
