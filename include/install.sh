#!/bin/sh
# Builds the C library and installs it with its headers, pkg-config file and CMake package.
#
#   sh include/install.sh --prefix DIR [--libdir LIB] [--target TRIPLE]
#   sh include/install.sh --finish --prefix DIR [--libdir LIB]     after `cargo cinstall --prefix DIR`
#
# --prefix DIR     where to; the tree may be moved afterwards. Default: /usr/local
# --libdir LIB     below the prefix: lib/x86_64-linux-gnu, say. Default: lib
# --target TRIPLE  what to build for, as cargo names it. Default: this machine
# --finish         builds nothing: seals the static library that cargo-c has installed, strips the
#                  shared one, and gives the tree the same pkg-config file
#
# From the environment: DESTDIR (a root to install below), CARGO, LD, AR, OBJCOPY, STRIP.
# Needs a Rust toolchain and binutils; prints the sizes of what it installed.
set -eu

say() { printf '%s\n' "$*"; }
fail() { say "install.sh: $*" >&2; exit 1; }

prefix=/usr/local libdir=lib target=${CARGO_BUILD_TARGET-} finish=''
while [ $# -gt 0 ]; do
    case $1 in
    --prefix | --libdir | --target) [ $# -ge 2 ] || fail "$1 wants a value" ;;
    esac
    case $1 in
    --prefix) prefix=$2; shift ;;
    --libdir) libdir=$2; shift ;;
    --target) target=$2; shift ;;
    --prefix=*) prefix=${1#*=} ;;
    --libdir=*) libdir=${1#*=} ;;
    --target=*) target=${1#*=} ;;
    --finish) finish=yes ;;
    --help | -h) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) fail "$1: unknown; see --help" ;;
    esac
    shift
done
case $libdir in
/* | *..*) fail "--libdir is below the prefix" ;;
esac

root=$(cd "$(dirname "$0")/.." && pwd)
case $prefix in
/*) ;;
*) prefix=$PWD/$prefix ;;
esac
destination=${DESTDIR-}$prefix
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$root/Cargo.toml" | head -n 1)
soname=libshardwheel.so.${version%%.*}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Makes of a Rust static library one with a single object, whose only global names are sw_*: two
# libraries written in Rust can then be linked into one program. What no export needs is left out. No
# section stays in a group: of two groups of one name a linker keeps one, whose names are local here.
# No bitcode stays: some of the standard library's objects have it, and a linker with a plug-in of
# another LLVM version would try to read it.
seal() {
    # With link-time optimization on, the standard library has no objects of its own here.
    ! "${AR:-ar}" t "$1" | grep -q '^std-' || fail "$1: not optimized at link time"
    # shellcheck disable=SC2046 # one word for each export
    "${LD:-ld}" -r --gc-sections --force-group-allocation \
        $(sed 's/^/-u /' "$scratch/exports") -o "$scratch/whole.o" "$1"
    "${OBJCOPY:-objcopy}" --wildcard --keep-global-symbol='sw_*' --strip-debug \
        --remove-section .llvmbc --remove-section .llvmcmd \
        "$scratch/whole.o" "$scratch/shardwheel.o"
    rm -f "$scratch/sealed.a"
    "${AR:-ar}" rcsD "$scratch/sealed.a" "$scratch/shardwheel.o"
    install -m 644 "$scratch/sealed.a" "$2"
}

# Installs the shared library without what is for debuggers alone.
strip_shared() {
    "${STRIP:-strip}" --strip-debug -o "$scratch/shared" "$1"
    install -m 755 "$scratch/shared" "$destination/$libdir/libshardwheel.so.$version"
}

# The header declares each function at the beginning of a line.
sed -n 's/^[a-z].*[ *]\(sw_[a-z_]*\)(.*/\1/p' "$root/include/shardwheel.h" |
    grep -v '^typedef' | sort >"$scratch/exports"

install -d "$destination/$libdir/pkgconfig"
if [ "$finish" ]; then
    seal "$destination/$libdir/libshardwheel.a" "$destination/$libdir/libshardwheel.a"
    strip_shared "$destination/$libdir/libshardwheel.so.$version"
else
    cd "$root"
    files=${CARGO_TARGET_DIR:-$root/target}
    built=$files/${target:+$target/}release
    # The crate types are given here: beside an rlib, link-time optimization would be lost. The soname
    # lets a program that was built against one release run with the next compatible one.
    say "building shardwheel $version"
    "${CARGO:-cargo}" rustc --quiet --lib --release --features capi --crate-type cdylib,staticlib \
        --target-dir "$files" ${target:+--target "$target"} -- "-Clink-arg=-Wl,-soname,$soname"

    seal "$built/libshardwheel.a" "$destination/$libdir/libshardwheel.a"
    strip_shared "$built/libshardwheel.so"
    ln -sf "libshardwheel.so.$version" "$destination/$libdir/$soname"
    ln -sf "libshardwheel.so.$version" "$destination/$libdir/libshardwheel.so"

    install -d "$destination/include/shardwheel" "$destination/share/cmake/shardwheel"
    for header in include/*.h include/*.hpp include/shardwheel/*.h include/shardwheel/*.hpp; do
        [ ! -f "$header" ] || install -m 644 "$header" "$destination/$header"
    done
    install -m 644 include/cmake/shardwheel-*.cmake "$destination/share/cmake/shardwheel"
fi

# From the pkg-config file's own place up to the prefix.
up=$(printf %s "$libdir/pkgconfig" | sed 's:[^/][^/]*:..:g')
sed -e "s|@UP@|$up|" -e "s|@LIBDIR@|$libdir|" -e "s|@VERSION@|$version|" \
    "$root/include/shardwheel.pc.in" >"$scratch/pc"
install -m 644 "$scratch/pc" "$destination/$libdir/pkgconfig/shardwheel.pc"

size() { printf '%9d bytes  %s\n' "$(wc -c <"$1")" "$1"; }
size "$destination/$libdir/libshardwheel.so.$version"
size "$destination/$libdir/libshardwheel.a"
say "installed shardwheel $version in $destination"
