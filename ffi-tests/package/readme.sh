#!/bin/sh
# readme.sh README PREFIX SCRATCH: whoever copies the README's C and C++ examples and its commands gets
# programs that run.
set -eu
readme=$1 prefix=$2 scratch=$3
mkdir -p "$scratch"

# block LANGUAGE: the first one of it.
block() { sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/p" "$readme" | sed -e '/^```/d'; }
# command_of START: the line of the README that begins so.
command_of() { grep "^$1" "$readme"; }

block c >"$scratch/timeout.c"
block cpp >"$scratch/session.cpp"
in_c=$(command_of 'cc timeout.c')
in_cpp=$(command_of 'c++ -std=c++17 session.cpp')
export PKG_CONFIG_PATH="$prefix/lib/pkgconfig" LD_LIBRARY_PATH="$prefix/lib"
cd "$scratch"
for build in "$in_c" "$in_cpp"; do
    echo "$build"
    eval "$build"
done
./timeout | grep -q '^request timed out, [0-9]* ns late$'
[ "$(./session)" = idle ]
