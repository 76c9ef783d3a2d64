"""Lists what is compiled into `weir`: a bill of materials in the format CycloneDX, and the
texts of the licences of all crates.

    components.py VERSION TARGET SBOM LICENCES

Crates of both halves count: of the server, and of the browser side that it embeds. Which
crates these are, cargo says, with the features that a build of the workspace has. Tests,
build scripts and macros are not in the program. The browser library is a package of npm,
whose licences `docs/licences/posthog-js.txt` has. Both files depend on the sources alone.
"""

import base64
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys

BROWSER = "wasm32-unknown-unknown"
# Names of files with a licence, or with a notice that must be kept.
LICENCE_FILE = re.compile(
    r"(un)?(licen[cs]e|copying|copyright|notice)s?([-_.][\w-]+)*(\.(md|txt))?", re.IGNORECASE
)
SOURCE_FILE = re.compile(r"\.(c|cc|cpp|h|html|js|json|py|rs|sh|toml|yml)$")


def main():
    version, target, sbom, licences = sys.argv[1:]
    packages = {}
    for package in metadata()["packages"]:
        packages[package["name"], package["version"]] = package
    edges = tree("weir-server", ["--workspace", "--target", target])
    browser = ["--package", "weir-frontend", "--features", "hydrate,split", "--target", BROWSER]
    for crate, uses in tree("weir-frontend", browser).items():
        edges.setdefault(crate, set()).update(uses)
    crates = [packages[key] for key in sorted(edges)]
    pathlib.Path(sbom).write_text(bill(version, crates, edges))
    pathlib.Path(licences).write_text(texts(crates))


def cargo(*arguments):
    done = subprocess.run(["cargo", *arguments, "--locked"], stdout=subprocess.PIPE, check=True)
    return done.stdout.decode()


def metadata():
    return json.loads(cargo("metadata", "--format-version", "1"))


def tree(root, arguments):
    """The crates that `root` links, each with the crates that it uses."""
    lines = cargo(
        "tree", *arguments, "--edges", "normal,no-proc-macro", "--prefix", "depth",
        "--format", " {p}",
    ).splitlines()
    uses, path, found = {}, [], None
    for line in filter(None, lines):
        depth, name, version = line.split()[:3]
        crate = (name, version.removeprefix("v"))
        del path[int(depth):]
        # A crate that cargo has listed before is listed again without its crates.
        uses.setdefault(crate, set())
        if path:
            uses[path[-1]].add(crate)
        path.append(crate)
        if name == root:
            found = crate
    reached, left = {}, [found]
    while left:
        crate = left.pop()
        if crate not in reached:
            reached[crate] = uses[crate]
            left.extend(uses[crate])
    return reached


def bill(version, crates, edges):
    """The document in CycloneDX 1.5."""
    sums = checksums()
    # The library of the compiler is no crate of the lock file.
    compiler = subprocess.run(["rustc", "--version"], stdout=subprocess.PIPE, check=True)
    compiler = compiler.stdout.decode().split()[1]
    std = f"pkg:generic/rust@{compiler}"
    root = f"pkg:generic/weir@{version}"
    components = [
        {
            "type": "library", "bom-ref": std, "name": "rust-std", "version": compiler,
            "licenses": [{"expression": "MIT OR Apache-2.0"}], "purl": std,
        }
    ]
    for crate in crates:
        component = {
            "type": "library", "bom-ref": purl(crate), "name": crate["name"],
            "version": crate["version"], "licenses": [{"expression": licence(crate)}],
            "purl": purl(crate),
        }
        sha256 = sums.get((crate["name"], crate["version"]))
        if sha256:
            component["hashes"] = [{"alg": "SHA-256", "content": sha256}]
        components.append(component)
    library = browser_library()
    components.append(library)
    by_key = {(crate["name"], crate["version"]): purl(crate) for crate in crates}
    server = next(by_key[key] for key in by_key if key[0] == "weir-server")
    browser = next(by_key[key] for key in by_key if key[0] == "weir-frontend")
    depends = [{"ref": root, "dependsOn": [server, browser, library["purl"], std]}]
    for key in sorted(edges):
        depends.append({"ref": by_key[key], "dependsOn": [by_key[use] for use in sorted(edges[key])]})
    epoch = int(os.environ["SOURCE_DATE_EPOCH"])
    document = {
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {
            "timestamp": datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc)
            .strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "application", "bom-ref": root, "name": "weir", "version": version,
                "licenses": [{"expression": "Apache-2.0"}], "purl": root,
            },
        },
        "components": components,
        "dependencies": depends,
    }
    return json.dumps(document, indent=1) + "\n"


def browser_library():
    """The scripts that the server has for pages of other sites."""
    packages = json.loads(pathlib.Path("end2end/package-lock.json").read_text())["packages"]
    package = packages["node_modules/posthog-js"]
    address = f"pkg:npm/posthog-js@{package['version']}"
    sha512 = base64.b64decode(package["integrity"].removeprefix("sha512-")).hex()
    return {
        "type": "library", "bom-ref": address, "name": "posthog-js",
        "version": package["version"], "licenses": [{"expression": package["license"]}],
        "purl": address, "hashes": [{"alg": "SHA-512", "content": sha512}],
    }


def checksums():
    """The checksums of the registry, from the lock file."""
    entry = re.compile(
        r'^name = "(.+)"\nversion = "(.+)"\n(?:source = .*\n)?checksum = "(.+)"$', re.MULTILINE
    )
    found = entry.findall(pathlib.Path("Cargo.lock").read_text())
    return {(name, version): sha256 for name, version, sha256 in found}


def purl(crate):
    kind = "cargo" if crate["source"] else "generic"
    return f"pkg:{kind}/{crate['name']}@{crate['version'].replace('+', '%2B')}"


def licence(crate):
    """The licence as an SPDX expression."""
    if crate["license"]:
        # The former way to write OR.
        return re.sub(r"\s*/\s*", " OR ", crate["license"])
    if crate["license_file"]:
        text = pathlib.Path(crate["manifest_path"]).with_name(crate["license_file"]).read_text()
        if text.lstrip().startswith("Business Source License 1.1"):
            return "BUSL-1.1"
    sys.exit(f"components.py: the licence of {crate['name']} {crate['version']} is not known")


def texts(crates):
    """The texts of the licences, each once, with the crates that have it."""
    owners, without = {}, []
    for crate in crates:
        if not crate["source"]:
            continue
        directory = pathlib.Path(crate["manifest_path"]).parent
        # Below the top too: some crates bring a library in C with a licence of its own.
        files = [
            file for file in directory.rglob("*")
            if LICENCE_FILE.fullmatch(file.name) and not SOURCE_FILE.search(file.name)
            and file.is_file()
        ]
        name = f"{crate['name']} {crate['version']}"
        found = {file.read_text(errors="replace").replace("\r\n", "\n").strip() for file in files}
        for text in found:
            owners.setdefault(text, []).append(name)
        if not found:
            without.append(f"{name}: {licence(crate)}")
    parts = ["The licences of the libraries that the program weir contains.\n"]
    for text, names in sorted(owners.items(), key=lambda item: (item[1], item[0])):
        parts.append(f"{'=' * 78}\n{', '.join(names)}\n{'=' * 78}\n\n{text}\n")
    parts.append(f"{'=' * 78}\nWithout a text in their sources\n{'=' * 78}\n")
    parts.append("\n".join(without) + "\n")
    return "\n".join(parts)


main()
