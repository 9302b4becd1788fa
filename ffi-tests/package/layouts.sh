#!/bin/sh
# layouts.sh CC CXX INCLUDE SCRATCH: sizes and offsets, as C and C++ see them, are those of the list
# `layouts`; `cargo test --test header` compares the same list with Rust's.
set -eu
cc=$1 cxx=$2 include=$3 scratch=$4
list=$(dirname "$0")/layouts
mkdir -p "$scratch"

{
    printf '#include <shardwheel.h>\n#include <stdio.h>\n\nint main(void)\n{\n'
    while read -r what _; do
        case $what in
        *.*) value="offsetof(${what%%.*}, ${what#*.})" ;;
        *) value="sizeof($what)" ;;
        esac
        printf '    printf("%s %%zu\\n", %s);\n' "$what" "$value"
    done <"$list"
    printf '    return 0;\n}\n'
} >"$scratch/layouts.c"

"$cc" -std=c99 -I "$include" "$scratch/layouts.c" -o "$scratch/c"
"$cxx" -std=c++11 -xc++ -I "$include" "$scratch/layouts.c" -o "$scratch/cpp"
for program in c cpp; do
    "$scratch/$program" | diff -u "$list" -
done
