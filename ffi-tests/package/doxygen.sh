#!/bin/sh
# doxygen.sh INCLUDE SCRATCH: Doxygen reads the headers without a warning, and finds everything
# documented.
set -eu
include=$1 scratch=$2
mkdir -p "$scratch"
doxygen - <<END
PROJECT_NAME = shardwheel
INPUT = $include/shardwheel.h $include/shardwheel.hpp $include/shardwheel
FILE_PATTERNS = *.h *.hpp
STRIP_FROM_PATH = $include
STRIP_FROM_INC_PATH = $include
OUTPUT_DIRECTORY = $scratch
EXCLUDE_SYMBOLS = sw::detail sw::detail::* std
DISTRIBUTE_GROUP_DOC = YES
MACRO_EXPANSION = YES
GENERATE_HTML = NO
GENERATE_LATEX = NO
GENERATE_XML = YES
QUIET = YES
WARN_AS_ERROR = FAIL_ON_WARNINGS
END
