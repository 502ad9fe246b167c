#!/usr/bin/env bash
# A PostgreSQL server for tests, in a folder of its own, as an unprivileged user.
#
#   e2e/postgres.sh start FOLDER    prints the URL of its database
#   e2e/postgres.sh stop FOLDER     ends the server and removes the folder
#   e2e/postgres.sh version         prints the version that is used; fails if there is none
#
# It listens on a free port of 127.0.0.1. POSTGRES_BIN names the folder of initdb and pg_ctl; without
# it, that of the newest version that Debian has installed.

set -euo pipefail

bin=${POSTGRES_BIN:-}
if [[ -z "$bin" ]]; then
  bin=$(find /usr/lib/postgresql -maxdepth 2 -name bin 2>/dev/null | sort -V | tail -n 1)
  if [[ -z "$bin" ]]; then bin=$(dirname "$(command -v initdb)"); fi
fi
if [[ ! -x "$bin/initdb" ]]; then
  echo "postgres.sh: no PostgreSQL: install it, or set POSTGRES_BIN" >&2
  exit 1
fi

# PostgreSQL refuses to run as root.
as_user() {
  if ((EUID == 0)); then runuser -u nobody -- "$@"; else "$@"; fi
}

free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

start() {
  local folder=$1 port
  mkdir -p "$folder"
  if ((EUID == 0)); then chown nobody "$folder"; fi
  # Another locale than that of the keys, which compare byte by byte.
  as_user "$bin/initdb" --pgdata "$folder/data" --username callboard --auth trust --encoding UTF8 \
    --locale-provider icu --icu-locale sv --no-sync >"$folder.log" 2>&1 ||
    as_user "$bin/initdb" --pgdata "$folder/data" --username callboard --auth trust \
      --encoding UTF8 --locale C --no-sync >"$folder.log" 2>&1
  port=$(free_port)
  as_user "$bin/pg_ctl" --pgdata "$folder/data" --wait --silent --log "$folder/server.log" \
    --options "-p $port -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off -c max_connections=500" \
    start >>"$folder.log" 2>&1
  echo "postgres://callboard@127.0.0.1:$port/postgres"
}

stop() {
  local folder=$1
  as_user "$bin/pg_ctl" --pgdata "$folder/data" --mode immediate --silent stop || true
  rm -rf "$folder" "$folder.log"
}

case ${1:-} in
  start) start "$2" ;;
  stop) stop "$2" ;;
  version) "$bin/initdb" --version ;;
  *)
    echo "usage: postgres.sh start|stop FOLDER, or version" >&2
    exit 2
    ;;
esac
