# syntax=docker/dockerfile:1
# SPDX-License-Identifier: Apache-2.0
#
# The images of the project, for every platform:
#
#   docker buildx build --platform linux/amd64,linux/arm64 --target operator -t <registry>/mysql-mfg/operator:<version> --push .
#   docker buildx build --platform linux/amd64,linux/arm64 --target sidecar  -t <registry>/mysql-mfg/sidecar:<version>  --push .
#   docker buildx build --platform linux/amd64,linux/arm64 --target backup   -t <registry>/mysql-mfg/backup:<version>   --push .
#
# Releases are made by e2e/release, which needs no container engine and puts the same into the same places (docs/releasing.md).
#
# The programs are static and bring all they need, so the images stand on nothing. To stand on a base image, such as
# distroless static nonroot, give it by digest: --build-arg BASE=<image>@sha256:<digest>.

ARG GO_IMAGE=golang:1.26
ARG BASE=scratch

FROM --platform=$BUILDPLATFORM ${GO_IMAGE} AS build
ARG TARGETOS
ARG TARGETARCH
# The root module alone, the way it is released; and the Go that is in the image, not one that is fetched.
ENV CGO_ENABLED=0 GOWORK=off GOTOOLCHAIN=local
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
# The commit is stamped in from .git, which is therefore part of the context.
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    git config --global --add safe.directory /src && \
    for program in operator sidecar backup; do \
        GOOS=${TARGETOS} GOARCH=${TARGETARCH} go build -trimpath -buildvcs=true -o /out/${program} ./${program} && \
        go run ./hack/licences -out /out/licences/${program} -os ${TARGETOS} -arch ${TARGETARCH} ./${program} || exit 1; \
    done

FROM ${BASE} AS common
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /src/LICENSE /licenses/LICENSE
ARG VERSION=devel
ARG REVISION=unknown
ARG CREATED
LABEL org.opencontainers.image.source="https://github.com/mysql-mfg/mfg" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}"

FROM common AS operator
LABEL org.opencontainers.image.title="mfg operator" \
      org.opencontainers.image.description="Operator of MySQL failover groups"
COPY --from=build /out/licences/operator /licenses/third-party
COPY --from=build /out/operator /operator
USER 65532:65532
EXPOSE 8080 8081 8082
ENTRYPOINT ["/operator"]

# The sidecar runs as the user of the MySQL pod (999), in its own container and, copied, in the MySQL image.
FROM common AS sidecar
LABEL org.opencontainers.image.title="mfg sidecar" \
      org.opencontainers.image.description="Sidecar of a MySQL site: it fences the site and answers for it"
COPY --from=build /out/licences/sidecar /licenses/third-party
COPY --from=build /out/sidecar /sidecar
USER 65532:65532
EXPOSE 8090
ENTRYPOINT ["/sidecar"]

# It is copied into Jobs with the MySQL image of the group, and runs there as the user of MySQL.
FROM common AS backup
LABEL org.opencontainers.image.title="mfg backup" \
      org.opencontainers.image.description="Makes, verifies and loads backups of MySQL failover groups"
COPY --from=build /out/licences/backup /licenses/third-party
COPY --from=build /out/backup /backup
USER 65532:65532
ENTRYPOINT ["/backup"]
