#!/bin/sh
# abi.sh CC INCLUDE SCRATCH: the ABI as libabigail sees it has not changed since it was written down in
# shardwheel.abi. SHARDWHEEL_BLESS=1 writes it anew, which is for changes that keep the soname's
# promise, or come with a new soname.
#
# What is looked at is a library of empty functions with the header's declarations: C's view, free of
# what is private to the sources. That the real library has the same names and layouts is for
# symbols.sh and layouts.sh.
set -eu
cc=$1 include=$2 scratch=$3
abi=$(dirname "$0")/shardwheel.abi
mkdir -p "$scratch"

{
    printf '#include "shardwheel.h"\n'
    # From the first declaration on, each that ends in ");" gets a body.
    sed -e '1,/^extern "C" {/d' -e '/^#/d' -e '/^}/d' -e 's/);$/) { __builtin_trap(); }/' \
        "$include/shardwheel.h"
} >"$scratch/empty.c"
cp "$include/shardwheel.h" "$scratch"
# Without the machine's paths in it.
(cd "$scratch" && "$cc" -std=c11 -g -O0 -fPIC -shared -ffile-prefix-map="$PWD=." -I. \
    -Wl,-soname,libshardwheel.so.0 empty.c -o libshardwheel.so.0)
(cd "$scratch" && abidw --no-corpus-path --no-comp-dir-path --no-show-locs \
    --out-file now.abi libshardwheel.so.0)

if [ "${SHARDWHEEL_BLESS-}" = 1 ]; then
    cp "$scratch/now.abi" "$abi"
fi
abidiff "$abi" "$scratch/now.abi"
