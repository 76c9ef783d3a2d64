"""Writes an image for containers, as an archive of the OCI image layout.

    image.py BINARY DOCUMENTS VERSION ARCHITECTURE OUTPUT

The image has two layers: the shared libraries that the program needs, with certificate
authorities, and the program with its documents. There is no shell and no package manager.
The libraries are those of this machine, from packages of Debian or Ubuntu, because the
program was linked with them; `/var/lib/dpkg/status.d` lists the packages for scanners.
Nothing else of this machine is in the image.
"""

import datetime
import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile

EPOCH = int(os.environ["SOURCE_DATE_EPOCH"])
USER = 65532
DATA = "var/lib/weir"
MEDIA = "application/vnd.oci.image"
DPKG = "var/lib/dpkg/status.d"

PASSWD = f"""root:x:0:0:root:/root:/sbin/nologin
weir:x:{USER}:{USER}:Weir:/{DATA}:/sbin/nologin
"""
GROUP = f"""root:x:0:
weir:x:{USER}:
"""
# Names of hosts come from the file first, then from name servers.
NSSWITCH = "hosts: files dns\n"


def main():
    binary, documents, version, architecture, output = sys.argv[1:]
    layers = [base(binary), program(binary, documents)]
    created = datetime.datetime.fromtimestamp(EPOCH, datetime.timezone.utc)
    created = created.strftime("%Y-%m-%dT%H:%M:%SZ")
    labels = {
        "org.opencontainers.image.title": "weir",
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.created": created,
        "org.opencontainers.image.licenses": "Apache-2.0 AND BUSL-1.1",
    }
    config = {
        "created": created,
        "architecture": architecture,
        "os": "linux",
        "config": {
            "User": f"{USER}:{USER}",
            "ExposedPorts": {"8000/tcp": {}},
            "Env": [
                "PATH=/usr/bin",
                "WEIR_LISTEN=0.0.0.0:8000",
                # The master key is beside the directory of data, so both are in the volume.
                f"WEIR_DATA=/{DATA}/data",
            ],
            "Entrypoint": ["/usr/bin/weir"],
            "Cmd": ["serve"],
            "Volumes": {f"/{DATA}": {}},
            # A `weir.toml` that is mounted there is read.
            "WorkingDir": "/etc/weir",
            "StopSignal": "SIGTERM",
            "Labels": labels,
        },
        "rootfs": {"type": "layers", "diff_ids": [digest(layer) for layer in layers]},
        "history": [
            {"created": created, "created_by": "packaging/image.py", "comment": comment}
            for comment in ("libraries and certificates", "weir")
        ],
    }
    blobs = {}

    def blob(content, kind, **fields):
        blobs[digest(content)] = content
        entry = {"mediaType": f"{MEDIA}.{kind}", "digest": digest(content), "size": len(content)}
        return entry | fields

    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{MEDIA}.manifest.v1+json",
        "config": blob(encoded(config), "config.v1+json"),
        "layers": [
            blob(gzip.compress(layer, 6, mtime=0), "layer.v1.tar+gzip") for layer in layers
        ],
        "annotations": labels,
    }
    index = {
        "schemaVersion": 2,
        "mediaType": f"{MEDIA}.index.v1+json",
        "manifests": [
            blob(
                encoded(manifest), "manifest.v1+json",
                platform={"architecture": architecture, "os": "linux"},
                annotations={"org.opencontainers.image.ref.name": version},
            )
        ],
    }
    archive = Tree()
    archive.file("oci-layout", encoded({"imageLayoutVersion": "1.0.0"}))
    archive.file("index.json", encoded(index))
    for name, content in sorted(blobs.items()):
        archive.file("blobs/" + name.replace(":", "/"), content)
    pathlib.Path(output).write_bytes(archive.written())


def base(binary):
    """The layer below the program."""
    tree = Tree()
    packages = set()
    for name, file in libraries(binary):
        tree.file(name, file.read_bytes(), 0o755)
        packages.add(owner(file))
    # Where the loader of libraries and the libraries themselves are looked for.
    for link in ("lib", "lib64"):
        tree.link(link, f"usr/{link}")
    tree.file("etc/ssl/certs/ca-certificates.crt", authorities())
    packages.add("ca-certificates")
    for package in sorted(packages):
        status = output("dpkg-query", "--status", package)
        name = package.split(":")[0]
        tree.file(f"{DPKG}/{name}", status)
        copyright_file = pathlib.Path(f"/usr/share/doc/{name}/copyright")
        tree.file(str(copyright_file)[1:], copyright_file.read_bytes())
    tree.file("etc/os-release", pathlib.Path("/etc/os-release").read_bytes())
    tree.file("etc/passwd", PASSWD.encode())
    tree.file("etc/group", GROUP.encode())
    tree.file("etc/nsswitch.conf", NSSWITCH.encode())
    tree.directory("tmp", 0o1777)
    tree.directory(DATA, 0o700, USER)
    return tree.written()


def program(binary, documents):
    """The layer of the program."""
    tree = Tree()
    tree.file("usr/bin/weir", pathlib.Path(binary).read_bytes(), 0o755)
    tree.directory("etc/weir")
    documents = pathlib.Path(documents)
    for file in sorted(documents.rglob("*")):
        if file.is_file():
            tree.file(f"usr/share/doc/weir/{file.relative_to(documents)}", file.read_bytes())
    return tree.written()


def libraries(binary):
    """The shared libraries of a program: their paths in the image, and their files."""
    for path in re.findall(r"(/\S+) \(0x", output("ldd", binary).decode()):
        yield f"usr/{path.removeprefix('/usr').lstrip('/')}", pathlib.Path(path).resolve()


def owner(file):
    """The package that a file is from."""
    # Its path may be written with or without /usr, where both are the same directory.
    names = {str(file), str(file).removeprefix("/usr")}
    found = subprocess.run(["dpkg-query", "--search", *names], stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL)
    packages = {line.rsplit(": ", 1)[0] for line in found.stdout.decode().splitlines()}
    if len(packages) != 1:
        sys.exit(f"image.py: {file} is not from a package: {packages}")
    return packages.pop()


def authorities():
    """The certificates of the package, without those that this machine trusts in addition."""
    files = output("dpkg-query", "--listfiles", "ca-certificates").decode().splitlines()
    files = sorted(file for file in files if file.endswith(".crt"))
    return b"".join(pathlib.Path(file).read_bytes() for file in files)


class Tree:
    """A tar archive whose bytes follow from its contents alone."""

    def __init__(self):
        self.entries = {}

    def file(self, name, content, mode=0o644):
        self._add(name, tarfile.REGTYPE, mode, content=content)

    def directory(self, name, mode=0o755, user=0):
        self._add(name, tarfile.DIRTYPE, mode, user=user)

    def link(self, name, target):
        self._add(name, tarfile.SYMTYPE, 0o777, target=target)

    def _add(self, name, kind, mode, content=b"", target="", user=0):
        for parent in list(pathlib.PurePosixPath(name).parents)[:-1]:
            if str(parent) not in self.entries:
                self.directory(str(parent))
        entry = tarfile.TarInfo(name)
        entry.type, entry.mode, entry.mtime = kind, mode, EPOCH
        entry.uid = entry.gid = user
        entry.size, entry.linkname = len(content), target
        self.entries[name] = (entry, content)

    def written(self):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for _, (entry, content) in sorted(self.entries.items()):
                archive.addfile(entry, io.BytesIO(content))
        return out.getvalue()


def digest(content):
    return "sha256:" + hashlib.sha256(content).hexdigest()


def encoded(document):
    return json.dumps(document, sort_keys=True).encode()


def output(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout


main()
