#!/bin/sh
# Installs the package below the build directory and runs all tests of it: the programs with gcc, each
# linked in four ways, and under valgrind; the same with clang, ASan and UBSan; the headers; the ABI.
#
#   sh ffi-tests/run.sh
#
# CARGO_TARGET_DIR (else target) holds cargo's files; the library is built in its directory `cabi`, as
# `cargo test` does, and not again if it is there.
set -eu
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-$PWD/target}
case $target in
/*) ;;
*) target=$PWD/$target ;;
esac
export CARGO_TARGET_DIR="$target/cabi"
work=$target/ffi-tests
jobs=$(nproc)

rm -rf "$work/package"
sh include/install.sh --prefix "$work/package"

# check DIRECTORY [OPTION...]: configures, builds, tests.
check() {
    directory=$work/$1
    shift
    cmake -S ffi-tests -B "$directory" -DCMAKE_PREFIX_PATH="$work/package" "$@" >"$work/configure.log" ||
        { cat "$work/configure.log"; exit 1; }
    cmake --build "$directory" --parallel "$jobs" >"$work/build.log" 2>&1 ||
        { cat "$work/build.log"; exit 1; }
    ctest --test-dir "$directory" --parallel "$jobs" --output-on-failure
}

check plain
if command -v clang >/dev/null && command -v clang++ >/dev/null; then
    check sanitized -DSANITIZE=ON -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++
else
    check sanitized -DSANITIZE=ON
fi
