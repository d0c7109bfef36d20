#!/usr/bin/env bash
# Creates a lead with curl 7.71 or later: create-lead.sh LEAD_AS_JSON [IDEMPOTENCY_KEY]
set -euo pipefail

lead=$1
# One key per lead, the same for every retry: store it with the lead until there is a response.
key=${2:-$(cat /proc/sys/kernel/random/uuid)}
url=${LEAD_INTAKE_URL:?}
url=${url%/}/v1/integrations/leads
ATTEMPTS=6

answer=$(mktemp)
trap 'rm -f "$answer"' EXIT

# curl retries after failures that may pass (no answer, 408, 429, 5xx). It waits for Retry-After, or else twice as long each
# time. It follows no redirect, and decodes responses (--compressed). The API key comes from a file, so that the list of
# processes does not show it.
status=$(curl --silent --output "$answer" --write-out '%{http_code} %{content_type}' --max-time 10 \
  --retry $((ATTEMPTS - 1)) --retry-all-errors --compressed \
  "$url" \
  --header @<(echo "Authorization: Bearer $LEAD_INTAKE_KEY") \
  --header 'Content-Type: application/json' \
  --header "Idempotency-Key: $key" \
  --data-binary "$lead") || status=none
# Only the service's own response counts: proxies respond as well, even with JSON.
read -r status type <<< "${status,,}"
type=${type%%;*}
uuid='[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}'
code=
[ "$type" = application/problem+json ] && code=$(sed -n 's/.*"code":"\([a-z_]*\)".*/\1/p' "$answer")
# The service has only these codes. A firewall's response with another code is not a refusal.
[[ $code =~ ^(integration_.+|subscription_suspended|route_not_found|method_not_allowed|internal_error)$ ]] || code=
[ "$type" = application/json ] && grep -qiE "^\{.*\"lead\":\{.*\"id\":\"$uuid\".*\} *$" "$answer" && code=lead

case "$status $code" in
  '201 lead') cat "$answer" && echo ;;
  # The contact has an open lead: a normal outcome. A setting of the studio decides whether it keeps the note, so keep it yourself.
  '409 integration_lead_already_open')
    echo 'open already'
    if grep -q '"note" *: *"[^"]' <<< "$lead"; then exit 3; fi
    ;;
  # The key has created a lead with other data: new data needs a new key.
  '409 integration_idempotency_conflict')
    echo "$code: $key belongs to another lead" >&2
    exit 1
    ;;
  408* | 429* | [!4]* | *' ')
    echo "no certain outcome ($status $code): repeat later with the same data and the key $key" >&2
    exit 75
    ;;
  # A retry does not help: the response states the problem.
  *)
    cat "$answer" >&2
    exit 1
    ;;
esac
