#!/bin/sh
# ends.sh CODE WORDS PROGRAM [ARGUMENT...]: the program must end with this code and print, to
# whatever stream, a line that these words match (-: anything goes).
code=$1 words=$2
shift 2
printed=$("$@" 2>&1)
ended=$?
printf '%s\n' "$printed"
if [ "$ended" -ne "$code" ]; then
    echo "ended with $ended, not $code"
    exit 1
fi
if [ "$words" != - ] && ! printf '%s' "$printed" | tr '\n' ' ' | grep -q "$words"; then
    echo "did not say: $words"
    exit 1
fi
