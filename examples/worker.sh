#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# worker.sh QUEUE COMMAND [ARGUMENT...] - a worker in shell, with nothing but curl and jq: claims jobs
# from a `pawl serve`, runs COMMAND for each with the payload on standard input, and says how it went.
# Exit 0 of it is success, 65 a failure for good, anything else a failed attempt.
#
# From the environment: PAWL_URL (http://127.0.0.1:7295), PAWL_TOKEN (with the scope "work"), PAWL_LEASE (30s).
# SIGTERM and SIGINT let it finish the job that it has, and end.
set -eu

[ $# -ge 2 ] || {
    printf 'usage: worker.sh QUEUE COMMAND [ARGUMENT...]\n' >&2
    exit 64
}
queue=$1
shift
url=${PAWL_URL:-http://127.0.0.1:7295}
lease=${PAWL_LEASE:-30s}
main=$$
# A name that no other worker has or had.
worker=$(uname -n)/$main/$(od -An -N8 -tx1 /dev/urandom | tr -d ' \n')

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
umask 077
# The token goes to curl by a file: the arguments of a process can be seen by everybody.
printf 'header = "Authorization: Bearer %s"\n' "${PAWL_TOKEN:-none}" >"$scratch/curlrc"
[ -n "${PAWL_TOKEN:-}" ] || : >"$scratch/curlrc"
mkfifo "$scratch/alive"
# As long as this shell lives, the other end of this does not come to its end.
exec 8<>"$scratch/alive"

say() {
    printf 'worker.sh: %s\n' "$*" >&2
}

# In a shell of its own: ask SECONDS PATH BODY ANSWER, the last two are names of files. Prints the
# status, 000 where there was no answer.
ask() {
    exec curl -sS -K "$scratch/curlrc" -m "$1" -o "$scratch/$4" -w '%{http_code}' \
        -H 'Content-Type: application/json' --data-binary "@$scratch/$3" "$url$2" 2>"$scratch/$4.error" 8>&-
}

now_ms() { # by a clock that nobody sets
    read -r up _ </proc/uptime
    echo "${up%.*}${up#*.}0"
}

seconds() {
    printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000))
}

# ---------------------------------------------------------------- the heartbeat, in the background

# Whether the lease was extended. Without an answer it is asked again, for one interval: three of
# them are less than the lease, so the work stops before somebody else can have the job.
renew() {
    until_ms=$(($(now_ms) + interval_ms))
    while left_ms=$((until_ms - $(now_ms))) && [ "$left_ms" -gt 0 ]; do
        case $(ask "$(seconds "$left_ms")" "/v1/jobs/$id/renew" proof renewed) in
        200) return 0 ;;
        000 | 503 | 504) sleep 0.1 ;;
        *) return 1 ;;
        esac
    done
    return 1
}

# Until the end of what it reads from: the shell that works has ended then, however that came about.
beat() {
    exec 9<"$scratch/alive" 8>&-
    while :; do
        # Of the end, cat tells with 0; of the time, timeout with 124.
        if timeout "$(seconds "$interval_ms")" cat <&9 >/dev/null; then
            kill -s KILL -- "-$1" 2>/dev/null || : # nobody would renew for what it left behind
            rm -rf "$scratch"
            return
        fi
        renew || {
            kill -s USR1 "$main" 2>/dev/null || :
            return
        }
    done
}

# ---------------------------------------------------------------- one job

# Say how it went, until that is answered; the heartbeat goes on meanwhile.
settle() {
    jq -c --arg action "$1" --arg code "$2" \
        '. + {action: $action} + if $code == "" then {} else {error_code: $code} end' \
        "$scratch/proof" >"$scratch/end"
    while [ "$is_lost" = no ]; do
        case $(ask 10 "/v1/jobs/$id/settle" end settled) in
        200)
            say "$id: $1"
            return
            ;;
        409)
            say "$id: the lease was lost: what became of it is no longer mine to say"
            return
            ;;
        000 | 503 | 504) sleep 0.2 ;; # repeating it does no harm
        *)
            say "$id: $(cat "$scratch/settled")"
            return
            ;;
        esac
    done
    say "$id: the lease was lost before the end was told"
}

work_on() {
    id=$(jq -r '.jobs[0].id' "$scratch/claimed")
    jq -c --arg worker "$worker" \
        '.jobs[0] | {worker: $worker, token: .token, version: .lease_version}' \
        "$scratch/claimed" >"$scratch/proof"
    interval_ms=$(($(jq '.jobs[0].lease_ms' "$scratch/claimed") / 4))
    if jq -e '.jobs[0] | has("payload")' "$scratch/claimed" >/dev/null; then
        jq -j '.jobs[0].payload' "$scratch/claimed" >"$scratch/payload"
    else
        jq -r '.jobs[0].payload_base64' "$scratch/claimed" | base64 -d >"$scratch/payload"
    fi
    is_lost=no
    is_heard=no
    # A group of its own, so that whatever it starts can be stopped with it.
    PAWL_JOB_ID=$id setsid "$@" <"$scratch/payload" 8>&- &
    child=$!
    beat "$child" &
    beating=$!
    code=0
    wait "$child" || code=$?
    while [ "$is_heard" = yes ]; do # a signal may have ended the wait, and not the command
        is_heard=no
        again=0
        wait "$child" || again=$?
        [ "$again" -eq 127 ] || code=$again # 127: it was waited for already
    done
    child=
    if [ "$is_lost" = yes ]; then
        say "$id: the lease was lost: stopped"
    else
        case $code in
        0) settle succeed '' ;;
        65) settle fail exit-65 ;;
        *) settle retry "exit-$code" ;;
        esac
    fi
    kill "$beating" 2>/dev/null || :
    wait "$beating" 2>/dev/null || :
}

# ---------------------------------------------------------------- the worker

child=
asking=
is_lost=no
is_heard=no
is_ending=no
# SIGKILL, since the job may be somebody else's at any moment. Until `wait` has given it, the number
# is that of nobody else.
trap 'is_heard=yes; is_lost=yes; [ -z "$child" ] || kill -s KILL -- "-$child" 2>/dev/null || :' USR1
trap 'is_heard=yes; is_ending=yes; [ -z "$asking" ] || kill "$asking" 2>/dev/null || :' TERM INT

jq -nc --arg worker "$worker" --arg queue "$queue" --arg lease "$lease" \
    '{worker: $worker, queues: [{queue: $queue, lease: $lease}], wait: "20s"}' >"$scratch/claim"
say "$worker works on $queue at $url"
while [ "$is_ending" = no ]; do
    # In the background, so that a signal is heard. A job that comes too late for that is given back
    # by the server, or its lease expires.
    ask 40 /v1/claim claim claimed >"$scratch/status" &
    asking=$!
    wait "$asking" || :
    asking=
    [ "$is_ending" = no ] || break
    case $(cat "$scratch/status") in
    200) [ "$(jq '.jobs | length' "$scratch/claimed")" -eq 0 ] || work_on "$@" ;;
    000 | 503 | 504)
        say "no answer: $(cat "$scratch/claimed.error")"
        sleep 1
        ;;
    *)
        say "refused: $(cat "$scratch/claimed")"
        exit 1
        ;;
    esac
done
say 'ended'
