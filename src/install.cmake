# What `cmake --install` and packages hold. Included from CMakeLists.txt; files that a copy of src/ alone lacks, as in the
# container image, are left out.
include(GNUInstallDirs)
set(ZEROTRAIN_ZSH_COMPLETIONS "${CMAKE_INSTALL_DATADIR}/zsh/site-functions" CACHE STRING
    "Where completion for zsh is installed (packages of Debian: share/zsh/vendor-completions)")

# Libraries outside the system's folders are found where they were when it was built.
set_target_properties(zerotrain PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
install(TARGETS zerotrain RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

# The manual and the completions are written by the program itself. (A sanitizer's program may not run everywhere.)
if(NOT ZEROTRAIN_SANITIZE)
  set(usage ${CMAKE_BINARY_DIR}/usage)
  set(written zerotrain.1 zerotrain.bash _zerotrain zerotrain.fish)
  list(TRANSFORM written PREPEND ${usage}/)
  add_custom_command(
    OUTPUT ${written}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${usage}
    COMMAND zerotrain --print-manual > ${usage}/zerotrain.1
    COMMAND zerotrain completion bash > ${usage}/zerotrain.bash
    COMMAND zerotrain completion zsh > ${usage}/_zerotrain
    COMMAND zerotrain completion fish > ${usage}/zerotrain.fish
    DEPENDS zerotrain VERBATIM)
  add_custom_target(usage ALL DEPENDS ${written})
  if(ZEROTRAIN_DEBIAN_FILES)
    install(CODE "execute_process(COMMAND gzip -9nkf ${usage}/zerotrain.1 COMMAND_ERROR_IS_FATAL ANY)")
    install(FILES ${usage}/zerotrain.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  else()
    install(FILES ${usage}/zerotrain.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  endif()
  install(FILES ${usage}/zerotrain.bash RENAME zerotrain
          DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${usage}/_zerotrain DESTINATION ${ZEROTRAIN_ZSH_COMPLETIONS})
  install(FILES ${usage}/zerotrain.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()

# Configs lie beside data/ as they do in the project, so that their relative paths mean the same:
# share/zerotrain/scripts/prepare_data.sh writes share/zerotrain/data/kjv.txt.
set(share ${CMAKE_INSTALL_DATADIR}/zerotrain)
install(DIRECTORY configs DESTINATION ${share} OPTIONAL PATTERN bench EXCLUDE)
install(PROGRAMS scripts/prepare_data.sh scripts/install_packages.sh DESTINATION ${share}/scripts OPTIONAL)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs OPTIONAL)
install(FILES README.md DESTINATION ${CMAKE_INSTALL_DOCDIR} OPTIONAL)
if(NOT ZEROTRAIN_DEBIAN_FILES)
  install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} OPTIONAL)
endif()

# Packages: scripts/package.sh.
set(ZEROTRAIN_MAINTAINER "The authors of zerotrain <authors@zerotrain.invalid>" CACHE STRING
    "Who answers for a package: NAME <ADDRESS>")
if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/scripts/package.sh)
  include(${CMAKE_CURRENT_SOURCE_DIR}/scripts/package/debian.cmake)
endif()
