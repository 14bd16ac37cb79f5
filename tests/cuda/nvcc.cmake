# Tests of what nvcc makes of the sources that the emulation runs, and the same tests on a GPU.

# Every file for all architectures that are supported, without a warning.
find_program(ZEROTRAIN_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES bin)
mark_as_advanced(ZEROTRAIN_NVCC)
if(ZEROTRAIN_NVCC)
  set(nvcc_sources ${backend_sources} ${backend_kernels} ${kernels})
  if(ZEROTRAIN_CUDA_BUILT AND ZEROTRAIN_WARNINGS_AS_ERRORS AND "${CMAKE_CUDA_ARCHITECTURES}" STREQUAL "80;90;100")
    set(nvcc_sources ${kernels})  # the build itself has compiled the backend so
  endif()
  foreach(source IN LISTS nvcc_sources)
    get_filename_component(name ${source} NAME_WE)
    add_test(NAME cuda_nvcc_compiles_${name}
             COMMAND ${CCACHE} ${ZEROTRAIN_NVCC} -std=c++20 --expt-relaxed-constexpr -Werror all-warnings
                     -Xcompiler=-Wall,-Wextra -gencode=arch=compute_80,code=sm_80 -gencode=arch=compute_90,code=sm_90
                     -gencode=arch=compute_100,code=sm_100 -I${CMAKE_SOURCE_DIR}/src -I${CMAKE_SOURCE_DIR}/tests
                     -c ${source} -o ${CMAKE_CURRENT_BINARY_DIR}/${name}.nvcc.o)
    set_tests_properties(cuda_nvcc_compiles_${name} PROPERTIES LABELS unsanitized TIMEOUT 600)
  endforeach()
else()
  message(STATUS "Kernels are not compiled for GPUs: nvcc was not found")
endif()

# The tests of the backend on the GPU of this machine, if there is one.
if(ZEROTRAIN_CUDA_BUILT)
  file(GLOB gpu_tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/cuda/*_test.cpp)
  add_executable(cuda_backend_test_gpu ${gpu_tests} ${CMAKE_SOURCE_DIR}/tests/cuda/gpu_main.cpp)
  target_include_directories(cuda_backend_test_gpu PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_link_libraries(cuda_backend_test_gpu PRIVATE cuda_backend Catch2::Catch2)
  set_target_properties(cuda_backend_test_gpu PROPERTIES LINKER_LANGUAGE CXX)
  add_test(NAME cuda_backend_test_gpu COMMAND cuda_backend_test_gpu)
  set_tests_properties(cuda_backend_test_gpu PROPERTIES LABELS unsanitized TIMEOUT 600 SKIP_RETURN_CODE 77)
endif()
