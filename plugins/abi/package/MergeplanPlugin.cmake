# How a strategy plugin is built with CMake, here and outside: find_package(mergeplan) brings this file.
#
#   mergeplan_add_plugin(TARGET SOURCES a.c ... [NAME name] [MANIFEST file] [DIRECTORY folder])
#
# Makes NAME.so (NAME: TARGET where not given) with nothing exported but the one symbol, and puts the manifest
# (NAME.toml of the current source folder where not given) beside it as NAME.toml. Both go to DIRECTORY, by default
# the current binary folder, which can be given to mergeplan by --plugin-dir or MERGEPLAN_PLUGIN_PATH.
#
#   mergeplan_install_plugin(TARGET [DESTINATION folder])
#
# Installs the two where a mergeplan installed with the same prefix looks for plugins, or into another folder.

function(mergeplan_add_plugin target)
  cmake_parse_arguments(ARG "" "NAME;MANIFEST;DIRECTORY" "SOURCES" ${ARGN})
  if(NOT ARG_SOURCES)
    message(FATAL_ERROR "mergeplan_add_plugin(${target}): SOURCES is missing, expected the plugin's source files")
  endif()
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "mergeplan_add_plugin(${target}): unknown argument ${ARG_UNPARSED_ARGUMENTS}, "
                        "expected SOURCES, NAME, MANIFEST or DIRECTORY")
  endif()
  if(NOT ARG_NAME)
    set(ARG_NAME ${target})
  endif()
  if(NOT ARG_MANIFEST)
    set(ARG_MANIFEST ${ARG_NAME}.toml)
  endif()
  if(NOT ARG_DIRECTORY)
    set(ARG_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
  endif()
  set(map ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/mergeplan_plugin.map)
  add_library(${target} MODULE ${ARG_SOURCES})
  target_link_libraries(${target} PRIVATE mergeplan::plugin)
  target_link_options(${target} PRIVATE "LINKER:--version-script=${map}")
  set_target_properties(
    ${target}
    PROPERTIES PREFIX ""
               SUFFIX ".so"
               OUTPUT_NAME ${ARG_NAME}
               C_VISIBILITY_PRESET hidden
               CXX_VISIBILITY_PRESET hidden
               VISIBILITY_INLINES_HIDDEN ON
               LINK_DEPENDS ${map}
               LIBRARY_OUTPUT_DIRECTORY ${ARG_DIRECTORY}
               MERGEPLAN_MANIFEST ${ARG_DIRECTORY}/${ARG_NAME}.toml)
  configure_file(${ARG_MANIFEST} ${ARG_DIRECTORY}/${ARG_NAME}.toml COPYONLY)
endfunction()

function(mergeplan_install_plugin target)
  cmake_parse_arguments(ARG "" "DESTINATION" "" ${ARGN})
  if(NOT ARG_DESTINATION)
    set(ARG_DESTINATION lib/mergeplan/plugins)
  endif()
  get_target_property(manifest ${target} MERGEPLAN_MANIFEST)
  install(TARGETS ${target} LIBRARY DESTINATION ${ARG_DESTINATION})
  install(FILES ${manifest} DESTINATION ${ARG_DESTINATION})
endfunction()
