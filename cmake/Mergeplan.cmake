# How a library, a program, a plugin and a test of this project are declared.

# mergeplan_library(NAME SOURCES a.cc b.cc [DEPS target ...])
# A static library with hidden symbols; includes are written from the repository root.
function(mergeplan_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${ARG_DEPS} PRIVATE mergeplan_warnings)
endfunction()

# mergeplan_test(NAME SOURCES a_test.cc [DEPS target ...] [ENV "A=b" ...] [TIMEOUT seconds])
# One GoogleTest program; ctest runs it whole, tests/run.sh counts its cases.
function(mergeplan_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPS;ENV" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest_main mergeplan_warnings)
  add_test(NAME ${name} COMMAND ${name} --gtest_brief=1)
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  set_tests_properties(
    ${name}
    PROPERTIES
      TIMEOUT ${ARG_TIMEOUT}
      ENVIRONMENT
      "MERGEPLAN_SOURCE_DIR=${PROJECT_SOURCE_DIR};MERGEPLAN_BINARY_DIR=${PROJECT_BINARY_DIR};MERGEPLAN_BIN=${PROJECT_BINARY_DIR}/bin/mergeplan;${ARG_ENV}")
endfunction()
