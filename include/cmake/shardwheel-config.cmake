# find_package(shardwheel CONFIG [COMPONENTS shared static])
#
# Targets: shardwheel::shared and shardwheel::static, each if its library is installed. Everything
# is found from this file's own place, so that the tree can be moved.

get_filename_component(shardwheel_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

# The first file of this name in the prefix's library directories; empty if there is none.
function(shardwheel_library variable name)
    foreach(directory IN ITEMS "lib/${CMAKE_LIBRARY_ARCHITECTURE}" lib lib64)
        set(file "${shardwheel_prefix}/${directory}/${name}")
        if(EXISTS "${file}")
            set(${variable} "${file}" PARENT_SCOPE)
            return()
        endif()
    endforeach()
    set(${variable} "" PARENT_SCOPE)
endfunction()

shardwheel_library(shardwheel_shared_library libshardwheel.so)
shardwheel_library(shardwheel_static_library libshardwheel.a)

if(shardwheel_shared_library AND NOT TARGET shardwheel::shared)
    add_library(shardwheel::shared SHARED IMPORTED)
    set_target_properties(shardwheel::shared PROPERTIES
        IMPORTED_LOCATION "${shardwheel_shared_library}"
        IMPORTED_SONAME libshardwheel.so.0
        INTERFACE_INCLUDE_DIRECTORIES "${shardwheel_prefix}/include")
endif()

if(shardwheel_static_library AND NOT TARGET shardwheel::static)
    add_library(shardwheel::static STATIC IMPORTED)
    set_target_properties(shardwheel::static PROPERTIES
        IMPORTED_LOCATION "${shardwheel_static_library}"
        IMPORTED_LINK_INTERFACE_LANGUAGES C
        INTERFACE_INCLUDE_DIRECTORIES "${shardwheel_prefix}/include"
        INTERFACE_LINK_LIBRARIES "-pthread;rt;dl")
endif()

foreach(component IN ITEMS shared static)
    if(TARGET shardwheel::${component})
        set(shardwheel_${component}_FOUND TRUE)
    endif()
endforeach()
foreach(component IN LISTS shardwheel_FIND_COMPONENTS)
    if(shardwheel_FIND_REQUIRED_${component} AND NOT shardwheel_${component}_FOUND)
        set(shardwheel_FOUND FALSE)
        set(shardwheel_NOT_FOUND_MESSAGE "no ${component} library below ${shardwheel_prefix}")
    endif()
endforeach()

unset(shardwheel_shared_library)
unset(shardwheel_static_library)
