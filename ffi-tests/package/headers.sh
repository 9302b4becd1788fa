#!/bin/sh
# headers.sh CC CXX INCLUDE: every header compiles alone, twice in a row, in each standard that it is
# for, without a warning.
cc=$1 cxx=$2 include=$3
warnings="-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wundef -Werror"
failed=0

# alone HEADER STANDARD COMPILER [OPTION...]
alone() {
    header=$1 standard=$2
    shift 2
    # shellcheck disable=SC2086 # one word for each warning
    if said=$(printf '#include <%s>\n#include <%s>\nextern int alone;\n' "$header" "$header" |
        "$@" "-std=$standard" $warnings -I "$include" -fsyntax-only - 2>&1); then
        echo "ok: $header as $standard"
    # An adapter wants the headers of the loop that it is for.
    elif [ "${header#shardwheel/}" != "$header" ] &&
        ! printf '#include <%s>\n' "$header" |
            "$@" "-std=$standard" -I "$include" -M - >/dev/null 2>&1; then
        echo "SKIPPED: $header as $standard: another library's headers are not here"
        [ "${SHARDWHEEL_REQUIRE_TOOLS-}" != 1 ] || failed=1
    else
        printf '%s\nFAILED: %s as %s: %s\n' "$said" "$header" "$standard" "$*"
        failed=1
    fi
}

for standard in c99 c11 c17; do
    alone shardwheel.h $standard "$cc" -xc -Wstrict-prototypes
done
for standard in c++11 c++17 c++20; do
    alone shardwheel.h $standard "$cxx" -xc++ -Wold-style-cast
done
for standard in c++17 c++20; do
    alone shardwheel.hpp $standard "$cxx" -xc++ -fno-exceptions -fno-rtti
done
for header in "$include"/shardwheel/*.h; do
    alone "${header#"$include"/}" c99 "$cc" -xc -D_GNU_SOURCE -Wstrict-prototypes
    alone "${header#"$include"/}" c++11 "$cxx" -xc++
done
for header in "$include"/shardwheel.hpp "$include"/shardwheel/*.hpp; do
    for standard in c++17 c++20; do
        alone "${header#"$include"/}" $standard "$cxx" -xc++ -Wold-style-cast
    done
done
exit $failed
