#!/bin/sh
# replay.sh SCRATCH TICKS GAME...: the game's event log is the same byte for byte each time, with one shard and
# with three.
set -eu
scratch=$1 ticks=$2
shift 2
mkdir -p "$scratch"
"$@" replay 1 "$ticks" 7 "$scratch/first.log"
for shards in 1 3; do
    "$@" replay "$shards" "$ticks" 7 "$scratch/again.log" >/dev/null
    cmp "$scratch/first.log" "$scratch/again.log"
done
"$@" replay 1 "$ticks" 8 "$scratch/other.log" >/dev/null
! cmp -s "$scratch/first.log" "$scratch/other.log"
