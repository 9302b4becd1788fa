#!/bin/sh
# symbols.sh SHARED STATIC: each library defines the names of the list `symbols` for others, and no
# other one; the shared library's name in the loader's eyes is that of this ABI.
set -eu
shared=$1 static=$2
list=$(dirname "$0")/symbols

nm -D --defined-only "$shared" | awk '{ print $3 }' | LC_ALL=C sort | diff -u "$list" -
nm -g --defined-only "$static" | awk 'NF == 3 { print $3 }' | LC_ALL=C sort | diff -u "$list" -
readelf -d "$shared" | grep -q 'soname: \[libshardwheel.so.0\]'

# The names that programs and the loader look for are links to the one file.
directory=$(dirname "$shared")
file=$(readlink "$shared")
case $file in
libshardwheel.so.0.*) ;;
*) echo "$shared is a link to '$file'"; exit 1 ;;
esac
[ "$(readlink "$directory/libshardwheel.so.0")" = "$file" ]
[ -f "$directory/$file" ] && [ ! -L "$directory/$file" ]
