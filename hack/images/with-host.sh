#!/bin/sh
# Runs a package client inside an image build with what the building machine lent for it as secrets: `ca` (CA
# bundle), `apt` and `sources` (apt's configuration and sources), `pip` and `npm` (their configuration), `env` (proxies).
# Each is optional. They are mounted for this one command, and what the client leaves behind is removed.
set -eu
lent=/run/secrets
if [ -s "$lent/env" ]; then . "$lent/env"; fi
if [ -s "$lent/ca" ]; then
  export SSL_CERT_FILE="$lent/ca" PIP_CERT="$lent/ca" NODE_EXTRA_CA_CERTS="$lent/ca" npm_config_cafile="$lent/ca"
fi
if [ -s "$lent/apt" ]; then export APT_CONFIG="$lent/apt"; fi
if [ -s "$lent/pip" ]; then export PIP_CONFIG_FILE="$lent/pip"; fi
if [ -s "$lent/npm" ]; then export npm_config_userconfig="$lent/npm"; fi

job=$1
shift
case $job in
  apt-install) # PACKAGE...
    export DEBIAN_FRONTEND=noninteractive
    apt-get -q update
    apt-get -q install -y --no-install-recommends -o Dpkg::Options::=--force-unsafe-io -o Dpkg::Use-Pty=0 "$@"
    rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/*-old /var/cache/ldconfig/* /var/log/*
    ;;
  pip-install) # TARGET REQUIREMENTS
    python3 -m pip install --quiet --disable-pip-version-check --no-cache-dir --root-user-action=ignore \
      --no-compile --no-deps --only-binary=:all: --require-hashes --target "$1" --requirement "$2"
    python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash "$1"
    ;;
  npm-install) # NODE FOLDER-WITH-LOCK TARGET
    export PATH="$1/bin:$PATH" npm_config_update_notifier=false
    cd "$2"
    node "$1/lib/node_modules/npm/bin/npm-cli.js" ci --ignore-scripts --omit=dev --no-fund --no-audit --cache /tmp/npm
    rm -rf /tmp/npm
    find node_modules -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' \) -delete
    mkdir -p "$3"
    mv node_modules "$3/"
    ;;
  *)
    echo "with-host.sh: no job $job" >&2
    exit 2
    ;;
esac
