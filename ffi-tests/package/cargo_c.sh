#!/bin/sh
# cargo_c.sh SOURCES PREFIX SCRATCH: `cargo cinstall` makes the same tree as install.sh has made in
# PREFIX.
set -eu
sources=$1 prefix=$2 scratch=$3
if ! cargo cinstall --version >/dev/null 2>&1; then
    echo "SKIPPED: no cargo-c"
    exit 77
fi
rm -rf "$scratch/tree"
mkdir -p "$scratch"
cargo cinstall --release --manifest-path "$sources/Cargo.toml" \
    --prefix "$scratch/tree" --libdir lib
sh "$sources/include/install.sh" --finish --prefix "$scratch/tree"

files() { (cd "$1" && find . ! -type d | LC_ALL=C sort); }
files "$prefix" >"$scratch/expected"
files "$scratch/tree" | diff -u "$scratch/expected" -

# The text files are the same, and the links point to the same names.
(cd "$prefix" && find . -type f ! -name '*.so*' ! -name '*.a') | while read -r file; do
    cmp "$prefix/$file" "$scratch/tree/$file"
done
(cd "$prefix" && find . -type l) | while read -r link; do
    [ "$(readlink "$prefix/$link")" = "$(readlink "$scratch/tree/$link")" ]
done
sh "$(dirname "$0")/symbols.sh" "$scratch/tree/lib/libshardwheel.so" "$scratch/tree/lib/libshardwheel.a"
