# The readers of files on what fuzzers found (tests/fuzz/corpus), and on changes of it; scripts/fuzz.sh looks further.
file(GLOB ZEROTRAIN_FUZZ_TARGETS CONFIGURE_DEPENDS fuzz/*_fuzz.cpp)
foreach(source ${ZEROTRAIN_FUZZ_TARGETS})
  get_filename_component(name ${source} NAME_WE)
  string(REPLACE "_fuzz" "" subject ${name})
  add_executable(${subject}_corpus ${source} fuzz/corpus_main.cpp)
  target_include_directories(${subject}_corpus PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/fuzz)
  target_compile_definitions(${subject}_corpus PRIVATE ZEROTRAIN_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  target_link_libraries(${subject}_corpus PRIVATE zerotrain_core)
  add_test(NAME ${subject}_corpus
           COMMAND ${subject}_corpus ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/corpus/${subject} 2000)
  set_tests_properties(${subject}_corpus PROPERTIES TIMEOUT 300)
endforeach()
