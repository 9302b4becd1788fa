# Which requested versions this one serves: those of the same major number, up to itself.
set(PACKAGE_VERSION "0.1.0")

if(NOT PACKAGE_FIND_VERSION)
    set(PACKAGE_VERSION_COMPATIBLE TRUE)
else()
    string(REGEX MATCH "^[0-9]+" shardwheel_major "${PACKAGE_VERSION}")
    if(PACKAGE_FIND_VERSION_MAJOR EQUAL shardwheel_major
       AND PACKAGE_FIND_VERSION VERSION_LESS_EQUAL PACKAGE_VERSION)
        set(PACKAGE_VERSION_COMPATIBLE TRUE)
    else()
        set(PACKAGE_VERSION_COMPATIBLE FALSE)
    endif()
    if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
        set(PACKAGE_VERSION_EXACT TRUE)
    endif()
    unset(shardwheel_major)
endif()

# The library is for 64-bit systems alone.
if(CMAKE_SIZEOF_VOID_P AND NOT CMAKE_SIZEOF_VOID_P EQUAL 8)
    set(PACKAGE_VERSION "${PACKAGE_VERSION} (64-bit)")
    set(PACKAGE_VERSION_UNSUITABLE TRUE)
endif()
