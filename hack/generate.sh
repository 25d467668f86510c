#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Writes everything that is generated from api/v1alpha1: deepcopy functions, apply configurations, the
# CustomResourceDefinitions (config/crd and the chart), the schema of the group chart's values and the references of the
# fields. The output depends on nothing but the sources, so that CI can run it and look for a difference. Needs
# bin/controller-gen (make tools).
set -eu
cd "$(dirname "$0")/.."

gen=bin/controller-gen
if [ ! -x "$gen" ]; then
    echo "generate: $gen is missing: run 'make tools'" >&2
    exit 1
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# Without the old files a type that was removed would leave its apply configuration behind.
rm -rf api/v1alpha1/applyconfiguration
"$gen" object:headerFile=hack/header.txt paths=./api/v1alpha1
"$gen" applyconfiguration:headerFile=hack/header.txt paths=./api/v1alpha1
"$gen" crd:crdVersions=v1 paths=./api/v1alpha1 output:crd:dir="$tmp"

go run ./hack/crd group <"$tmp/mysql-mfg.io_mysqlfailovergroups.yaml"
go run ./hack/crd backup <"$tmp/mysql-mfg.io_mysqlbackups.yaml"
