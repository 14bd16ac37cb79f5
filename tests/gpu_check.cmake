# scripts/gpu-check.sh, the check of a card, as far as emulated GPUs go: its steps run and its report says what they did.
if(NOT TARGET zerotrain_cuda_emulated OR NOT Python3_FOUND)
  message(STATUS "scripts/gpu-check.sh is not tested: it takes emulated GPUs and Python 3")
  return()
endif()
# Of the operations' tests a few: the others run in tests of their own.
add_test(NAME gpu_check_on_emulated_gpus
         COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/gpu_check_test.py --build-dir ${CMAKE_BINARY_DIR}
                 --out ${CMAKE_CURRENT_BINARY_DIR}/gpu_check)
add_test(NAME gpu_check_parts COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/gpu_check_parts_test.py)
set_tests_properties(gpu_check_on_emulated_gpus gpu_check_parts PROPERTIES LABELS unsanitized TIMEOUT 180)
