# Installing and packaging; a sanitizer's build is not installed.
if(NOT ZEROTRAIN_SANITIZE)
  add_test(NAME install_and_package
           COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/install_test.sh ${CMAKE_BINARY_DIR} ${CMAKE_CURRENT_BINARY_DIR}/install)
  set_tests_properties(install_and_package PROPERTIES LABELS unsanitized TIMEOUT 180)
endif()
