#!/bin/sh
# examples.sh SOURCES PREFIX SCRATCH: each example in C and C++ is built by the command at its top, with the
# installed package. (They are run by `cargo test --test examples --test loops`.)
set -eu
sources=$1 prefix=$2 scratch=$3
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"
ln -s "$sources/examples" examples
export PKG_CONFIG_PATH="$prefix/lib/pkgconfig"
for example in examples/*.c examples/*.cpp; do
    build=$(sed -n -E 's/^ \* +((cc|c\+\+) .*)$/\1/p' "$example")
    echo "$build"
    # shellcheck disable=SC2046 # pkg-config's words
    if ! c++ -M $(pkg-config --cflags shardwheel) "$example" >/dev/null 2>&1; then
        echo "SKIPPED: $example: another library's headers are not here"
        [ "${SHARDWHEEL_REQUIRE_TOOLS-}" != 1 ] || exit 1
        continue
    fi
    eval "$build"
    program=${build##* -o }
    [ -x "$program" ]
done
