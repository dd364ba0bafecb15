# CUDA kernels (planner/search/cuda, and cuda/ in adapters/ linear, experts, vae_latent, network), optional:
#   MERGEPLAN_CUDA=AUTO (default)  where nvcc is found: $CUDACXX, the bin folders of $CUDA_PATH and
#                                  $CUDAToolkit_ROOT, $PATH. Sanitizer builds do without.
#   MERGEPLAN_CUDA=ON              nvcc must be there
#   MERGEPLAN_CUDA=OFF             never
# MERGEPLAN_CUDA_ARCHITECTURES lists the architectures with machine code of their own; newer devices
# translate the last one's PTX.
#
# CUDA is not made a language of the project: few files need nvcc, and the language would bring its
# libraries and flags into the link of every program, LibTorch's among them. The runtime is linked
# statically and looks for the driver when it is first used, so a program starts without either.
#
# mergeplan_cuda_object(OUT FILE.cu) compiles one file and sets OUT to the object.
# mergeplan_cuda_sources(OUT KERNELS FILE.cu BACKEND FILE.cc STAND_IN FILE.cc) sets OUT to what a library with kernels consists of:
# the object and the backend that starts it or, without CUDA, the stand-in that says there is no device.

set(MERGEPLAN_CUDA AUTO CACHE STRING "CUDA kernels in the search: AUTO, ON or OFF")
set_property(CACHE MERGEPLAN_CUDA PROPERTY STRINGS AUTO ON OFF)
set(MERGEPLAN_CUDA_ARCHITECTURES "80;90" CACHE STRING "CUDA architectures to compile for")

set(MERGEPLAN_HAVE_CUDA OFF)
if(MERGEPLAN_CUDA STREQUAL "AUTO" AND MERGEPLAN_SANITIZE)
  set(_cuda_wanted OFF)
elseif(MERGEPLAN_CUDA STREQUAL "AUTO")
  set(_cuda_wanted AUTO)
elseif(MERGEPLAN_CUDA)
  set(_cuda_wanted ON)
else()
  set(_cuda_wanted OFF)
endif()

if(_cuda_wanted)
  if(DEFINED ENV{CUDACXX} AND NOT "$ENV{CUDACXX}" STREQUAL "")
    find_program(MERGEPLAN_NVCC NAMES "$ENV{CUDACXX}")
  endif()
  find_program(MERGEPLAN_NVCC NAMES nvcc HINTS "$ENV{CUDA_PATH}/bin" "$ENV{CUDAToolkit_ROOT}/bin" NO_CMAKE_SYSTEM_PATH)
  set(_cuda_problem "")
  if(NOT MERGEPLAN_NVCC)
    set(_cuda_problem "nvcc was not found (PATH, CUDACXX, CUDA_PATH)")
  else()
    # The toolkit's own folder: nvcc may be a link or a script that starts the real one.
    execute_process(COMMAND "${MERGEPLAN_NVCC}" --dryrun -x cu -c /dev/null -o null.o ERROR_VARIABLE _cuda_dryrun
                    OUTPUT_VARIABLE _cuda_dryrun)
    string(REGEX MATCH "TOP=([^\r\n]*)" _cuda_top "${_cuda_dryrun}")
    find_library(
      MERGEPLAN_CUDART
      NAMES libcudart_static.a
      HINTS "${CMAKE_MATCH_1}"
      PATH_SUFFIXES lib64 lib targets/x86_64-linux/lib targets/sbsa-linux/lib)
    if(NOT MERGEPLAN_CUDART)
      set(_cuda_problem "libcudart_static.a was not found beside ${MERGEPLAN_NVCC}")
    endif()
  endif()
  if(NOT _cuda_problem)
    set(MERGEPLAN_HAVE_CUDA ON)
    message(STATUS "CUDA kernels: ${MERGEPLAN_NVCC}, architectures ${MERGEPLAN_CUDA_ARCHITECTURES}")
  elseif(_cuda_wanted STREQUAL "AUTO")
    message(STATUS "CUDA kernels: none, ${_cuda_problem}")
  else()
    message(FATAL_ERROR "MERGEPLAN_CUDA is ${MERGEPLAN_CUDA}, but ${_cuda_problem}")
  endif()
endif()

if(MERGEPLAN_HAVE_CUDA)
  add_library(mergeplan_cudart INTERFACE)
  # Its symbols stay inside: LibTorch's CUDA libraries, opened later, bring a runtime of their own.
  target_link_libraries(mergeplan_cudart INTERFACE "${MERGEPLAN_CUDART}" Threads::Threads ${CMAKE_DL_LIBS} rt)
  target_link_options(mergeplan_cudart INTERFACE "LINKER:--exclude-libs,libcudart_static.a")
  # For modules that use LibTorch's CUDA headers.
  get_filename_component(_nvcc "${MERGEPLAN_NVCC}" REALPATH)
  get_filename_component(_toolkit "${_nvcc}/../.." ABSOLUTE)
  find_path(MERGEPLAN_CUDA_INCLUDE cuda_runtime_api.h HINTS "${_toolkit}/include" "${_toolkit}/targets/x86_64-linux/include")
endif()

# mergeplan_torch_cuda_module(TARGET OUTPUT SOURCE): a module for libexec that uses LibTorch's CUDA libraries and CUDA's
# headers, where both are there; else there is no such target.
function(mergeplan_torch_cuda_module target output source)
  if(NOT MERGEPLAN_HAVE_CUDA OR NOT MERGEPLAN_CUDA_INCLUDE OR NOT EXISTS "${MERGEPLAN_TORCH_LIBRARY_DIR}/libtorch_cuda.so")
    return()
  endif()
  add_library(${target} MODULE ${source})
  target_link_libraries(${target} PRIVATE mergeplan_warnings mergeplan_torch "${MERGEPLAN_TORCH_LIBRARY_DIR}/libtorch_cuda.so"
                                          "${MERGEPLAN_TORCH_LIBRARY_DIR}/libc10_cuda.so")
  # What the CUDA libraries need in turn is found when they are loaded.
  target_link_options(${target} PRIVATE -Wl,--allow-shlib-undefined)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  target_include_directories(${target} SYSTEM PRIVATE ${MERGEPLAN_CUDA_INCLUDE})
  set_target_properties(${target} PROPERTIES PREFIX "" OUTPUT_NAME ${output}
                                             LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/libexec/mergeplan)
  install(TARGETS ${target} LIBRARY DESTINATION libexec/mergeplan)
endfunction()

function(mergeplan_cuda_object out file)
  get_filename_component(name "${file}" NAME)
  set(object "${CMAKE_CURRENT_BINARY_DIR}/${name}.o")
  set(codes)
  foreach(arch IN LISTS MERGEPLAN_CUDA_ARCHITECTURES)
    list(APPEND codes "-gencode=arch=compute_${arch},code=sm_${arch}")
  endforeach()
  list(GET MERGEPLAN_CUDA_ARCHITECTURES -1 last)
  list(APPEND codes "-gencode=arch=compute_${last},code=compute_${last}")
  add_custom_command(
    OUTPUT "${object}"
    COMMAND
      "${MERGEPLAN_NVCC}" -ccbin "${CMAKE_CXX_COMPILER}" -std=c++17 -O3 -fmad=false ${codes} "-I${PROJECT_SOURCE_DIR}"
      -Werror all-warnings "-Xcompiler=-fPIC,-fvisibility=hidden,-Wall,-Wextra" -MD -MF "${object}.d" -MT "${object}"
      -c "${CMAKE_CURRENT_SOURCE_DIR}/${file}" -o "${object}"
    DEPENDS "${file}"
    DEPFILE "${object}.d"
    COMMENT "Compiling CUDA kernels ${file}"
    VERBATIM)
  set_source_files_properties("${object}" PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  set(${out} "${object}" PARENT_SCOPE)
endfunction()

function(mergeplan_cuda_sources out)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "KERNELS;BACKEND;STAND_IN" "")
  if(MERGEPLAN_HAVE_CUDA)
    mergeplan_cuda_object(object "${arg_KERNELS}")
    set(${out} "${arg_BACKEND}" "${object}" PARENT_SCOPE)
  else()
    set(${out} "${arg_STAND_IN}" PARENT_SCOPE)
  endif()
endfunction()
