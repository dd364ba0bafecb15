# LibTorch as imported targets of our own: link `mergeplan_torch` (CPU libraries and headers).
#
# The wheel's TorchConfig.cmake asks for a whole CUDA toolkit of its own version before it defines
# anything, which a machine that only runs torch does not have, and its `torch` target makes every
# program load the CUDA libraries at start (0.39 s instead of 0.25 s for --version here). So it is
# not used. mergeplan_torch links libtorch_cpu and libc10; a program that is asked for --device cuda
# opens libtorch_cuda.so, which lies in the same folder, at run time (adapters/runtime/device.cc).
#
# Looked for, in this order: TORCH_DIR (the folder that holds include/ and lib/), Torch_DIR (as
# find_package would be told), every folder of CMAKE_PREFIX_PATH and of the environment's, where
# `python -c "import torch; print(torch.utils.cmake_prefix_path)"` is one, and the system's folders.

set(TORCH_DIR "" CACHE PATH "Folder of LibTorch, the one that holds include/ and lib/")

function(_mergeplan_torch_roots out)
  set(prefixes ${CMAKE_PREFIX_PATH})
  if(DEFINED ENV{CMAKE_PREFIX_PATH})
    string(REPLACE ":" ";" from_environment "$ENV{CMAKE_PREFIX_PATH}")
    list(APPEND prefixes ${from_environment})
  endif()
  set(roots ${TORCH_DIR})
  if(Torch_DIR)
    list(APPEND roots "${Torch_DIR}/../../..")
  endif()
  foreach(prefix IN LISTS prefixes)
    # A prefix itself, or the share/cmake inside it that torch.utils.cmake_prefix_path names.
    list(APPEND roots "${prefix}" "${prefix}/../..")
  endforeach()
  set(${out} ${roots} PARENT_SCOPE)
endfunction()

_mergeplan_torch_roots(_torch_roots)
unset(_torch_root)
foreach(_root IN LISTS _torch_roots)
  if(EXISTS "${_root}/include/ATen/ATen.h" AND EXISTS "${_root}/lib/libtorch_cpu.so")
    get_filename_component(_torch_root "${_root}" REALPATH)
    break()
  endif()
endforeach()
if(_torch_root)
  set(_torch_include "${_torch_root}/include")
  set(_torch_lib "${_torch_root}/lib")
else()
  find_path(_torch_system_include ATen/ATen.h NO_CACHE)
  find_library(_torch_system_cpu torch_cpu NO_CACHE)
  if(NOT _torch_system_include OR NOT _torch_system_cpu)
    list(JOIN _torch_roots "\n    " _tried)
    message(
      FATAL_ERROR
        "LibTorch was not found: no folder with include/ATen/ATen.h and lib/libtorch_cpu.so.\n"
        "  Looked in\n    ${_tried}\n    the system's folders\n"
        "  Say where it is, e.g. -DCMAKE_PREFIX_PATH=$(python -c 'import torch; print(torch.utils.cmake_prefix_path)'),"
        " or build without it: --preset torch-free.")
  endif()
  set(_torch_include "${_torch_system_include}")
  get_filename_component(_torch_lib "${_torch_system_cpu}" DIRECTORY)
endif()

# Which std::string it was built for. Our other libraries use the new one.
set(_torch_config "${_torch_include}/../share/cmake/Torch/TorchConfig.cmake")
if(EXISTS "${_torch_config}")
  file(STRINGS "${_torch_config}" _torch_old_abi REGEX "_GLIBCXX_USE_CXX11_ABI=0")
  if(_torch_old_abi)
    message(FATAL_ERROR "LibTorch in ${_torch_lib} was built for the old std::string"
                        " (_GLIBCXX_USE_CXX11_ABI=0), which Debian's libraries do not have."
                        " Use a build for the new one: the wheel torch==2.11.0, or 'cxx11 ABI'.")
  endif()
endif()

set(MERGEPLAN_TORCH_VERSION "unknown")
set(_torch_version_header "${_torch_include}/torch/headeronly/version.h")
if(NOT EXISTS "${_torch_version_header}")
  set(_torch_version_header "${_torch_include}/torch/csrc/api/include/torch/version.h")
endif()
if(EXISTS "${_torch_version_header}")
  file(STRINGS "${_torch_version_header}" _torch_version_lines
       REGEX "#define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
  string(REGEX REPLACE "#define TORCH_VERSION_[A-Z]+ " "" _torch_version_lines
                       "${_torch_version_lines}")
  string(REPLACE ";" "." MERGEPLAN_TORCH_VERSION "${_torch_version_lines}")
endif()
message(STATUS "LibTorch ${MERGEPLAN_TORCH_VERSION}: ${_torch_lib}")

# Dependents find its own companions (CUDA runtime, cuDNN, …) through its run path, and we find it
# through ours, in the build tree and when installed.
foreach(_name c10 torch_cpu)
  add_library(mergeplan_${_name} SHARED IMPORTED)
  set_target_properties(
    mergeplan_${_name}
    PROPERTIES IMPORTED_LOCATION "${_torch_lib}/lib${_name}.so"
               INTERFACE_INCLUDE_DIRECTORIES
               "${_torch_include};${_torch_include}/torch/csrc/api/include")
endforeach()
add_library(mergeplan_torch INTERFACE)
target_link_libraries(mergeplan_torch INTERFACE mergeplan_torch_cpu mergeplan_c10)
set(MERGEPLAN_TORCH_LIBRARY_DIR "${_torch_lib}")

# mergeplan_torch_openmp: for files that use ATen/Parallel.h, whose loops run on LibTorch's own threads
# when compiled with OpenMP and on a single one, silently, without. The library must be the one that
# LibTorch runs on: the wheel brings its own.
find_package(OpenMP REQUIRED COMPONENTS CXX)
file(GLOB _torch_gomp "${_torch_lib}/libgomp*.so*")
if(_torch_gomp)
  list(GET _torch_gomp 0 _torch_gomp)
  add_library(mergeplan_gomp SHARED IMPORTED)
  set_target_properties(mergeplan_gomp PROPERTIES IMPORTED_LOCATION "${_torch_gomp}")
  add_library(mergeplan_torch_openmp INTERFACE)
  target_compile_options(mergeplan_torch_openmp INTERFACE ${OpenMP_CXX_FLAGS})
  target_link_libraries(mergeplan_torch_openmp INTERFACE mergeplan_gomp)
else()
  add_library(mergeplan_torch_openmp INTERFACE)
  target_link_libraries(mergeplan_torch_openmp INTERFACE OpenMP::OpenMP_CXX)
endif()
