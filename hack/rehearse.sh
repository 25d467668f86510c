#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Installs the plugin as users do (go install ...@VERSION), with the commit that is checked out here in place of a release on
# GitHub: what is not committed, or what go.mod of another module replaces, does not get in. Dependencies come from the
# module cache. Commits that others make meanwhile change nothing.
set -eu
repo=$(cd "$(dirname "$0")/.." && pwd)
commit=$(git -C "$repo" rev-parse HEAD)
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
cd "$bin"
module=github.com/mysql-mfg/mfg
# Users do not say -trimpath, but without it all dependencies are compiled once more (see Makefile).
env GOBIN="$bin" GOWORK=off CGO_ENABLED=0 GOPRIVATE="$module" GOSUMDB=off GOFLAGS="-mod=mod -trimpath" \
    GOPROXY="file://$(go env GOMODCACHE)/cache/download" \
    GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="url.file://$repo.insteadOf" GIT_CONFIG_VALUE_0="https://$module" \
    go install "$module/kubectl-mfg@$commit"
version=$("$bin/kubectl-mfg" version --client)
echo "$version"
case $version in
*"$(git -C "$repo" rev-parse --short=12 "$commit")"*) ;;
*v[0-9]*) git -C "$repo" describe --exact-match "$commit" >/dev/null ;; # a tag has its own name
*) echo "rehearse: the program does not know its version" >&2 && exit 1 ;;
esac
