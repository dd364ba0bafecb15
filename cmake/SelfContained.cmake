# For builds of the Python package (MERGEPLAN_PYTHON): what the planner links comes from static libraries, so that the wheel runs
# where Debian's packages are not installed. Included before find_package, which is told so here.

set(OPENSSL_USE_STATIC_LIBS ON)
set(ZLIB_USE_STATIC_LIBS ON)
find_library(LibArchive_LIBRARY NAMES libarchive.a)
# What its zip reader calls: shared libraries that its own shared library depends on, so they are there, though without a -dev package.
set(MERGEPLAN_ARCHIVE_NEEDS "")
foreach(name liblzma.so.5 libbz2.so.1.0 libzstd.so.1 libnettle.so.8)
  find_library(MERGEPLAN_${name} NAMES ${name})
  if(MERGEPLAN_${name})
    list(APPEND MERGEPLAN_ARCHIVE_NEEDS "${MERGEPLAN_${name}}")
  endif()
endforeach()

# toml++ is a shared library or headers on Debian: here it is the headers, with the flags that the shared library asks for (so that
# ccache knows the objects of other builds), and one file of the package compiles the library.
find_path(TOMLPLUSPLUS_INCLUDE_DIR toml++/toml.h REQUIRED)
add_library(tomlplusplus::tomlplusplus INTERFACE IMPORTED)
target_include_directories(tomlplusplus::tomlplusplus INTERFACE "${TOMLPLUSPLUS_INCLUDE_DIR}")
target_compile_features(tomlplusplus::tomlplusplus INTERFACE cxx_std_17)
target_compile_options(tomlplusplus::tomlplusplus INTERFACE -DTOML_HEADER_ONLY=0 -DTOML_SHARED_LIB=1)

# mergeplan_bundle(TARGET DESTINATION COMPONENT): installs the shared libraries that TARGET needs, directly or not, into DESTINATION:
# all but those that every system has. (Abseil is one of them: Debian's static one is not compiled for shared objects.) Each is named as it is asked for, so that it is there once; the target's
# rpath finds them, also for each other: it is DT_RPATH, which, unlike DT_RUNPATH, holds for what is loaded further down.
function(mergeplan_bundle target destination component)
  target_link_options(${target} PRIVATE -Wl,--disable-new-dtags)
  set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN/../${destination}")
  install(
    CODE "
    file(GET_RUNTIME_DEPENDENCIES MODULES \"$<TARGET_FILE:${target}>\" RESOLVED_DEPENDENCIES_VAR found
         PRE_EXCLUDE_REGEXES \"^ld-linux\" \"^lib(c|m|dl|rt|pthread|gcc_s|stdc..)\\\\.so\")
    foreach(library IN LISTS found)
      get_filename_component(name \"\${library}\" NAME)
      file(MAKE_DIRECTORY \"\${CMAKE_INSTALL_PREFIX}/${destination}\")
      file(REAL_PATH \"\${library}\" real)
      file(COPY_FILE \"\${real}\" \"\${CMAKE_INSTALL_PREFIX}/${destination}/\${name}\")
    endforeach()"
    COMPONENT ${component})
endfunction()
