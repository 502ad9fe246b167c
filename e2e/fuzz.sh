#!/usr/bin/env bash
#
# Lets schemathesis, which knows nothing of Callboard but its OpenAPI document, loose on a running
# server. `./test fuzz` prepares it and runs this.
#
#   e2e/fuzz.sh REPORT      where to write the JUnit report
#
# Environment: CALLBOARD_BIN is the server, SCHEMATHESIS the program.

set -euo pipefail

readonly REPORT=$1
readonly TOKEN=token-of-the-fuzzer
readonly START_SECONDS=30

# Left out, and why:
# - positive_data_acceptance: a schema cannot say that a cursor must be one that was given out, or
#   that a folder must be there;
# - /api/backup writes files wherever it is told to. crates/callboard/tests/it/api/fuzz.rs includes it, with
#   paths in a folder of its own;
# - streams, because the fuzzer waits for their end. fuzz.rs includes them too.
readonly EXCEPT=(
  --exclude-checks positive_data_acceptance
  --exclude-path-regex '^/api/backup$|^/api/chat|^/v1/chat|^/api/agui|/contract-events$'
)

folder=$(mktemp -d)
server=
trap 'stop; rm -rf "$folder"' EXIT

main() {
  start
  local address status=0
  address=$(sed -n 's|^callboard listening on \(.*\)/?token=.*|\1|p' "$folder/ready")
  "$SCHEMATHESIS" run "$address/api/openapi.json" \
    --header "Authorization: Bearer $TOKEN" \
    --checks all "${EXCEPT[@]}" \
    --seed 1 --max-examples 50 --generation-database none --suppress-health-check all \
    --continue-on-failure --warnings off --report-junit-path "$REPORT" || status=$?
  check_server
  return "$status"
}

start() {
  mkdir "$folder/workspace" "$folder/data"
  printf '[demo]\npace = "instant"\n' >"$folder/workspace/callboard.toml"
  cd "$folder/workspace"
  : >"$folder/ready"
  CALLBOARD_TOKEN=$TOKEN "$CALLBOARD_BIN" --data "$folder/data" --listen 127.0.0.1:0 \
    >"$folder/ready" 2>"$folder/log" &
  server=$!
  local end=$((SECONDS + START_SECONDS))
  until grep -q '^callboard listening' "$folder/ready"; do
    if ! kill -0 "$server" || ((SECONDS > end)); then
      cat "$folder/log" >&2
      exit 1
    fi
    sleep 0.1
  done
}

check_server() {
  if grep 'panicked' "$folder/log"; then exit 1; fi
  kill -0 "$server"
}

stop() {
  if [[ -n $server ]]; then
    kill "$server"
    wait "$server" || true
  fi
}

main
