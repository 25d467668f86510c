#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Takes promtool, or another program, out of the Debian package prometheus, which would also install and start a server:
# promtool.sh <file> [program]
set -eu
target=$1
program=${2:-promtool}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# apt gives up its rights to download.
chmod 755 "$tmp"
(
    cd "$tmp"
    apt-get -qq download prometheus >/dev/null 2>&1 || { apt-get -qq update && apt-get -qq download prometheus >/dev/null; }
)
dpkg-deb -x "$tmp"/prometheus_*.deb "$tmp/root"
mkdir -p "$(dirname "$target")"
install -m 755 "$tmp/root/usr/bin/$program" "$target.new"
mv "$target.new" "$target"
