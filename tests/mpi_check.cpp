// Run by mpirun: mpi_check RANKS_PER_NODE WAY. With windows or messages it prints nothing and exits 0 if all is
// well; with fail or lost one rank fails or is killed, and all must end.
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>

#include "comm/mpi.h"
#include "communicator_checks.h"
#include "core/errors.h"

int main(int argc, char** argv) {
  using namespace zt;
  using namespace zt::test;
  if (argc < 3) {
    std::cerr << "usage: mpirun -n N mpi_check RANKS_PER_NODE windows|messages|fail|lost\n";
    return 2;
  }
  const int ranks_per_node = std::atoi(argv[1]);
  const std::string way = argv[2];
  const bool windows = way != "messages";
  try {
    std::string note;
    auto communicator = mpi_communicator(ranks_per_node, windows, &note);
    if (!note.empty()) std::cerr << note << '\n';
    if (way == "fail" || way == "lost") {
      communicator->barrier();
      if (communicator->rank() == communicator->size() - 1) {
        if (way == "lost") kill(getpid(), SIGKILL);
        communicator->abort(3, "asked to fail");
        return 3;
      }
      for (;;) communicator->barrier();
    }
    try {
      PlainDevice device;
      check_communicator(*communicator, device, {0, 5, 3000});
      check_all_gather<float>(*communicator, device, Stream::gather, 1200003);
      check_reduce_scatter<bf16_t, float>(*communicator, device, Stream::reduce, 1200003);
      check_all_to_all<float>(*communicator, device, Stream::reduce, 100003);
      check_counts_of_dry_run(*communicator, 96);
    } catch (const PeerFailed&) {
      return 1;
    } catch (const std::exception& error) {
      communicator->abort(1, error.what());
      return 1;
    }
    communicator.reset();
    mpi_finalize();
  } catch (const PeerFailed&) {
    return 1;
  } catch (const std::exception& error) {
    if (prints_errors_before_mpi()) std::cerr << error.what() << '\n';
    return 2;
  }
  return 0;
}
