# The hosts and the adapters for loops, in small runs; `cargo test --test hosts --test loops` makes larger
# ones and looks at their accounts more closely. Included by CMakeLists.txt.

# host(name sources...)
function(host name)
    add_executable(${name} ${ARGN})
    set_target_properties(${name} PROPERTIES C_STANDARD 11 CXX_STANDARD 17)
    target_link_libraries(${name} PRIVATE shardwheel::shared)
endfunction()

host(proxy hosts/proxy/proxy.c hosts/proxy/session.c)
host(load hosts/proxy/load.c hosts/proxy/client.c hosts/proxy/origin.c)
host(rpc hosts/rpc.c)
host(game hosts/game.cpp)

add_test(NAME proxy COMMAND load $<TARGET_FILE:proxy> 300 1500)
add_test(NAME rpc COMMAND rpc 3 20000 40000 200)
set(replay sh "${CMAKE_CURRENT_SOURCE_DIR}/hosts/replay.sh" "${CMAKE_CURRENT_BINARY_DIR}/replay")
add_test(NAME game COMMAND ${replay} 12 $<TARGET_FILE:game>)
if(valgrind)
    add_test(NAME rpc.valgrind COMMAND ${leakcheck} $<TARGET_FILE:rpc> 2 1000 2000 200)
    add_test(NAME game.valgrind
             COMMAND ${leakcheck} $<TARGET_FILE:game> replay 2 3 7 "${CMAKE_CURRENT_BINARY_DIR}/game.log")
endif()

# loop(name source header [library])
include(CheckIncludeFileCXX)
function(loop name source header)
    check_include_file_cxx(${header} has_${name})
    if(has_${name})
        host(loop_${name} ${source})
        target_link_libraries(loop_${name} PRIVATE ${ARGN})
        add_test(NAME loop_${name} COMMAND loop_${name})
        # They count wake-ups, and the time that the loop's thread takes.
        set_tests_properties(loop_${name} PROPERTIES RUN_SERIAL ON)
    elseif("$ENV{SHARDWHEEL_REQUIRE_TOOLS}" STREQUAL "1")
        message(SEND_ERROR "required, but not here: <${header}>")
    else()
        message(WARNING "SKIPPED: what needs <${header}>")
    endif()
endfunction()

loop(uv loops/uv.c uv.h uv)
loop(event loops/event.c event2/event.h event_core)
loop(asio loops/asio.cpp boost/asio/io_context.hpp)
