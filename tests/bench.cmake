# The benches of scripts/bench, in their quick modes where they need nothing but zerotrain; the comparison with PyTorch as
# far as its table goes.
if(NOT Python3_FOUND)
  message(STATUS "scripts/bench is not tested: it takes Python 3")
  return()
endif()
add_test(NAME benches COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/bench_test.py --build-dir ${CMAKE_BINARY_DIR}
                              --out ${CMAKE_CURRENT_BINARY_DIR}/bench)
set_tests_properties(benches PROPERTIES LABELS unsanitized TIMEOUT 180)
