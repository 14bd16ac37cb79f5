# A package of Debian's kind by CPack. Included from src/install.cmake; scripts/package.sh makes one.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME zerotrain)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "${ZEROTRAIN_MAINTAINER}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "trains neural networks from one JSON file, sharded by ZeRO")
set(CPACK_PACKAGE_DESCRIPTION
    "zerotrain trains GPTs and MLPs, on one machine or many, with parameters,
gradients and optimizer states sharded by the stages of ZeRO. Its config speaks
DeepSpeed's language. Whatever the stage, the same config gives the same
weights, to the last bit.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)  # what it depends on: the packages of the libraries that it links
if(ZEROTRAIN_CUDA_BUILT)  # the toolkit's libraries, where the system's loader does not know them
  get_filename_component(toolkit ${ZEROTRAIN_NVCC} DIRECTORY)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${toolkit}/../lib64)
endif()
if(MPI_C_FOUND)
  set(CPACK_DEBIAN_PACKAGE_RECOMMENDS openmpi-bin)
endif()
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "bible-kjv, bible-kjv-text, dataset-fashion-mnist")  # for scripts/prepare_data.sh

# What Debian's policy asks for, and an installation elsewhere does not need.
option(ZEROTRAIN_DEBIAN_FILES "Install copyright, changelog and a compressed manual as Debian's packages have them" OFF)
if(ZEROTRAIN_DEBIAN_FILES)
  find_program(GZIP_PROGRAM gzip REQUIRED)
  set(package ${CMAKE_BINARY_DIR}/package)
  execute_process(COMMAND git -C ${CMAKE_SOURCE_DIR} log -1 --format=%cD OUTPUT_VARIABLE date
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT date)
    string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
  endif()
  file(WRITE ${package}/changelog.Debian
       "zerotrain (${PROJECT_VERSION}-1) unstable; urgency=medium\n\n  * Built from commit ${ZEROTRAIN_COMMIT}.\n\n"
       " -- ${ZEROTRAIN_MAINTAINER}  ${date}\n")
  string(SUBSTRING ${ZEROTRAIN_DATE} 0 4 year)
  file(WRITE ${package}/copyright
       "zerotrain is copyright ${year} the authors of zerotrain, and under the Apache License, version 2.0.\n\n"
       "On Debian systems its text is in /usr/share/common-licenses/Apache-2.0.\n")
  execute_process(COMMAND ${GZIP_PROGRAM} -9nf ${package}/changelog.Debian COMMAND_ERROR_IS_FATAL ANY)
  install(FILES ${package}/copyright ${package}/changelog.Debian.gz DESTINATION ${CMAKE_INSTALL_DOCDIR})
endif()
include(CPack)
