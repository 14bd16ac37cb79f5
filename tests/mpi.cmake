# Ranks over MPI. Included from tests/CMakeLists.txt; does nothing where MPI was not found.
if(MPI_C_FOUND)
  add_executable(mpi_check mpi_check.cpp)
  target_include_directories(mpi_check PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(mpi_check PRIVATE zerotrain_core)
  set(mpi_launch ${MPIEXEC_EXECUTABLE})
  execute_process(COMMAND ${MPIEXEC_EXECUTABLE} --version OUTPUT_VARIABLE mpi_version ERROR_QUIET)
  if(mpi_version MATCHES "Open MPI|OpenRTE")
    list(APPEND mpi_launch --oversubscribe --allow-run-as-root)
    add_test(NAME mpi_launcher_of_another_mpi COMMAND mpi_check 0 windows)
    set_tests_properties(mpi_launcher_of_another_mpi PROPERTIES ENVIRONMENT "PMI_SIZE=2;PMI_RANK=0"
                         PASS_REGULAR_EXPRESSION "belongs to another MPI")
  endif()
  foreach(ranks 1 2 3 4)
    foreach(ranks_per_node 0 1 2)
      add_test(NAME mpi_${ranks}_ranks_nodes_of_${ranks_per_node}
               COMMAND ${mpi_launch} -n ${ranks} $<TARGET_FILE:mpi_check> ${ranks_per_node} windows)
    endforeach()
    add_test(NAME mpi_${ranks}_ranks_by_messages
             COMMAND ${mpi_launch} -n ${ranks} $<TARGET_FILE:mpi_check> 0 messages)
  endforeach()
  foreach(ranks_per_node 0 1)
    add_test(NAME mpi_killed_rank_ends_all_nodes_of_${ranks_per_node}
             COMMAND ${mpi_launch} -n 3 $<TARGET_FILE:mpi_check> ${ranks_per_node} lost)
    set_tests_properties(mpi_killed_rank_ends_all_nodes_of_${ranks_per_node}
                         PROPERTIES PASS_REGULAR_EXPRESSION "signal 9" TIMEOUT 30)
    add_test(NAME mpi_failure_ends_all_nodes_of_${ranks_per_node}
             COMMAND ${mpi_launch} -n 3 $<TARGET_FILE:mpi_check> ${ranks_per_node} fail)
    set_tests_properties(mpi_failure_ends_all_nodes_of_${ranks_per_node}
                         PROPERTIES PASS_REGULAR_EXPRESSION "zerotrain: rank 2: asked to fail" TIMEOUT 30)
  endforeach()
endif()
