"""Checks files of a release, for scripts/test-package.

    check.py sbom FILE
    check.py image DIRECTORY ROOT    extracts the layers, prints the environment
"""

import gzip
import hashlib
import io
import json
import pathlib
import sys
import tarfile


def main():
    what, *arguments = sys.argv[1:]
    {"sbom": sbom, "image": image}[what](*arguments)


def sbom(file):
    document = json.loads(pathlib.Path(file).read_text())
    assert document["bomFormat"] == "CycloneDX" and document["specVersion"] == "1.5"
    components = {}
    for component in document["components"]:
        assert component["version"] and component["licenses"][0]["expression"], component
        assert component["purl"] == component["bom-ref"], component
        assert component["purl"] not in components, component
        components[component["purl"]] = component
    names = {component["name"] for component in components.values()}
    assert len(names) > 400, len(names)
    # The server, its database, a library in C, the browser side, the browser library.
    expected = {
        "weir-server", "surrealdb-core", "zstd-sys", "weir-frontend", "gloo-net", "posthog-js",
    }
    assert expected <= names, expected - names
    # For tests alone.
    assert not {"weir-testkit", "proptest"} & names
    for component in components.values():
        if component["name"] == "surrealdb-core":
            assert component["licenses"] == [{"expression": "BUSL-1.1"}], component
            assert component["hashes"], component
    for entry in document["dependencies"][1:]:
        assert set(entry["dependsOn"]) <= components.keys(), entry


def image(directory, root):
    directory = pathlib.Path(directory)
    assert json.loads((directory / "oci-layout").read_text()) == {"imageLayoutVersion": "1.0.0"}
    used = set()

    def blob(entry):
        content = (directory / "blobs" / entry["digest"].replace(":", "/")).read_bytes()
        assert len(content) == entry["size"], entry
        assert "sha256:" + hashlib.sha256(content).hexdigest() == entry["digest"], entry
        used.add(entry["digest"].removeprefix("sha256:"))
        return content

    (entry,) = json.loads((directory / "index.json").read_text())["manifests"]
    manifest = json.loads(blob(entry))
    config = json.loads(blob(manifest["config"]))
    assert config["os"] == "linux" and config["architecture"] == entry["platform"]["architecture"]
    layers = manifest["layers"]
    assert len(layers) == len(config["rootfs"]["diff_ids"])
    for layer, expected in zip(layers, config["rootfs"]["diff_ids"]):
        content = gzip.decompress(blob(layer))
        assert "sha256:" + hashlib.sha256(content).hexdigest() == expected, layer
        tarfile.open(fileobj=io.BytesIO(content)).extractall(root, numeric_owner=True)
    assert {file.name for file in (directory / "blobs/sha256").iterdir()} == used
    run = config["config"]
    assert run["User"] == "65532:65532" and run["Entrypoint"] == ["/usr/bin/weir"]
    assert run["Cmd"] == ["serve"] and run["Volumes"] == {"/var/lib/weir": {}}
    assert run["ExposedPorts"] == {"8000/tcp": {}}
    print("\n".join(run["Env"]))


main()
