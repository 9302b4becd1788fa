# The package itself: its headers, its ABI, a second Rust library beside it, and the other ways to get
# it. Included by CMakeLists.txt.

set(shared "${prefix}/lib/libshardwheel.so")
set(static "${prefix}/lib/libshardwheel.a")
set(here "${CMAKE_CURRENT_SOURCE_DIR}")
set(scratch "${CMAKE_CURRENT_BINARY_DIR}")

# script(name arguments...): runs NAME.sh; 77 means skipped.
function(script name)
    add_test(NAME ${name} COMMAND sh "${here}/package/${name}.sh" ${ARGN})
    set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77)
endfunction()

# ---------------------------------------------------------------------------------- headers

foreach(pair IN ITEMS gcc:g++ clang:clang++)
    string(REPLACE ":" ";" pair "${pair}")
    list(GET pair 0 cc)
    list(GET pair 1 cxx)
    tool(${cc} ${cc})
    if(${cc})
        add_test(NAME headers.${cc} COMMAND sh "${here}/package/headers.sh" ${cc} ${cxx} "${include_dir}")
        add_test(NAME layouts.${cc}
                 COMMAND sh "${here}/package/layouts.sh" ${cc} ${cxx} "${include_dir}"
                         "${scratch}/layouts.${cc}")
    endif()
endforeach()

tool(doxygen doxygen)
if(doxygen)
    script(doxygen "${include_dir}" "${scratch}/doxygen")
endif()

# -------------------------------------------------------------------------------------- ABI

script(symbols "${shared}" "${static}")
tool(abidw abidw)
if(abidw)
    script(abi "${CMAKE_C_COMPILER}" "${include_dir}" "${scratch}/abi")
endif()

# -------------------------------------------- beside another library that is written in Rust

tool(rustc rustc)
if(rustc)
    add_custom_command(
        OUTPUT libsecond.a
        COMMAND "${rustc}" --edition 2024 --crate-type staticlib -C opt-level=1
                "${here}/second/second.rs" -o libsecond.a
        DEPENDS second/second.rs)
    add_custom_target(second_library DEPENDS libsecond.a)
    add_executable(second second/second.c)
    add_dependencies(second second_library)
    set_target_properties(second PROPERTIES C_STANDARD 99)
    target_link_libraries(second PRIVATE shardwheel::static "${scratch}/libsecond.a" -lgcc_s)
    add_test(NAME second COMMAND second)
endif()

# -------------------------------------------------------------------------- from the sources

if(pkg_config AND EXISTS "${here}/../README.md")
    script(readme "${here}/../README.md" "${prefix}" "${scratch}/readme")
    script(examples "${here}/.." "${prefix}" "${scratch}/examples")
endif()

tool(cargo cargo)
if(cargo AND EXISTS "${here}/../Cargo.toml")
    add_test(NAME fetch_content
             COMMAND "${CMAKE_CTEST_COMMAND}" --build-and-test "${here}/fetch" "${scratch}/fetch"
                     --build-generator "${CMAKE_GENERATOR}" --build-options "-DSOURCE=${here}/.."
                     --test-command "${CMAKE_CTEST_COMMAND}" --output-on-failure)
    script(cargo_c "${here}/.." "${prefix}" "${scratch}/cargo_c")
    set_tests_properties(fetch_content PROPERTIES RESOURCE_LOCK cargo)
    set_tests_properties(cargo_c PROPERTIES RESOURCE_LOCK cargo)
endif()
