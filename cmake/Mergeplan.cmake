# How a library, a program, a plugin and a test of this project are declared.

# Files compiled together read the headers of their libraries once, which is most of what compiling them costs. With
# -DMERGEPLAN_UNITY=OFF each is compiled by itself.
function(mergeplan_compile_together target)
  if(MERGEPLAN_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
  endif()
endfunction()

# mergeplan_library(NAME SOURCES a.cc b.cc [DEPS target ...] [TOGETHER])
# A static library with hidden symbols; includes are written from the repository root. TOGETHER where headers of
# libraries (CLI11, LibTorch) are most of what its files compile.
function(mergeplan_library name)
  cmake_parse_arguments(ARG "TOGETHER" "" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${ARG_DEPS} PRIVATE mergeplan_warnings)
  if(ARG_TOGETHER)
    mergeplan_compile_together(${name})
  endif()
endfunction()

# mergeplan_test(NAME SOURCES a_test.cc [DEPS target ...] [ENV "A=b" ...] [TIMEOUT seconds])
# One GoogleTest program; ctest runs it whole, tests/run.sh counts its cases.
function(mergeplan_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPS;ENV" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest_main mergeplan_warnings)
  mergeplan_compile_together(${name})
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
