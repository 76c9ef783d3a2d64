#!/bin/sh
# Installs Weir from a file of a release, on this machine or at an https address.
#
#   install.sh weir_0.1.0_amd64.deb                 Debian and Ubuntu: also a service
#   install.sh weir-0.1.0-linux-amd64.tar.gz        others: /usr/local/bin/weir
#   install.sh https://…/weir_0.1.0_amd64.deb       the same, downloads the file
#
# The file SHA256SUMS of the release must be beside the file. Nothing of a file is
# installed, decompressed or run unless its checksum is the one of that list.
set -eu

# A function, so that a script that was not downloaded completely does nothing.
main() {
    [ $# -eq 1 ] || fail "usage: install.sh FILE-OR-URL"
    name="${1##*/}"
    case "$name" in
    weir_*.deb | weir-*.tar.gz) ;;
    *) fail "$name is neither a .deb nor a .tar.gz of a release" ;;
    esac
    [ "$(id -u)" = 0 ] || fail "root is needed: sudo sh install.sh $1"

    # A copy of our own: what is checked is what is installed.
    directory="$(mktemp -d)"
    trap 'rm -rf "$directory"' EXIT
    trap 'exit 1' HUP INT TERM
    fetch "$1" "$directory/$name"
    fetch "${1%"$name"}SHA256SUMS" "$directory/SHA256SUMS"
    verify
    case "$name" in
    *.deb) install_package ;;
    *) install_program ;;
    esac
}

fetch() {
    case "$1" in
    https://*)
        command -v curl >/dev/null || fail "curl is needed for downloads"
        curl --proto '=https' --proto-redir '=https' --fail --silent --show-error --location \
            --output "$2" "$1" || fail "$1 could not be downloaded"
        ;;
    *://*) fail "$1 is not an https address" ;;
    *) cp -- "$1" "$2" || fail "$1 is needed" ;;
    esac
}

verify() {
    expected="$(awk -v name="$name" '$2 == name || $2 == "*" name { print $1 }' \
        "$directory/SHA256SUMS")"
    [ -n "$expected" ] || fail "SHA256SUMS has no checksum of $name"
    [ "$(sha256sum "$directory/$name" | cut -d ' ' -f 1)" = "$expected" ] \
        || fail "the checksum of $name is wrong: nothing was installed"
}

install_package() {
    if command -v apt-get >/dev/null; then
        # apt reads the file as a user of its own.
        chmod 755 "$directory"
        apt-get install -y --no-install-recommends "$directory/$name"
    elif command -v dpkg >/dev/null; then
        dpkg -i "$directory/$name"
    else
        fail "this system has no dpkg: take the file that ends with .tar.gz"
    fi
    run="runuser -u weir -- weir --config /etc/weir/weir.toml"
    if [ -d /run/systemd/system ]; then
        echo "Weir runs at http://127.0.0.1:8000. To see how it does: systemctl status weir"
        echo "The link to set it up, as root: $run setup-link"
    else
        echo "Weir is installed. There is no systemd here; to start it, as root: $run serve"
    fi
}

install_program() {
    tar -xzf "$directory/$name" -C "$directory" --no-same-owner
    program="$directory/${name%.tar.gz}/weir"
    "$program" --version >/dev/null || fail "the program does not run on this machine"
    mkdir -p /usr/local/bin
    # Renamed into its place: a running program cannot be overwritten.
    cp "$program" /usr/local/bin/.weir.new
    chmod 755 /usr/local/bin/.weir.new
    mv /usr/local/bin/.weir.new /usr/local/bin/weir
    echo "Weir is installed: /usr/local/bin/weir."
    echo "To start it, with its data in ./data: weir serve"
}

fail() {
    printf 'install.sh: %s\n' "$*" >&2
    exit 1
}

main "$@"
