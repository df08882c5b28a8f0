#!/bin/sh
# Make the secrets that compose.yaml mounts, each in its own file in deploy/secrets. Existing files stay as they are.
set -eu
cd "$(dirname "$0")"
mkdir -p secrets
# Only this user enters the folder. Containers mount single files and run as other users, so the files are readable (644).
chmod 700 secrets

random() { head -c "$1" /dev/urandom | od -An -v -tx1 | tr -d ' \n'; }
make() { [ -s "secrets/$1" ] || printf '%s\n' "$2" >"secrets/$1"; }

make postgres_password "$(random 24)"
make valkey_password "$(random 24)"
make grafana_password "$(random 12)"
make bootstrap_admin_key "iiak_admin_$(random 20)"
make database_url "postgresql://ledgerline:$(cat secrets/postgres_password)@postgres:5432/ledgerline"
make redis_url "redis://:$(cat secrets/valkey_password)@valkey:6379/0"
make valkey_conf "requirepass $(cat secrets/valkey_password)"
chmod 644 secrets/*
echo "The secrets are in deploy/secrets. Back up that folder."
