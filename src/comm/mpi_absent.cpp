// What stands in the place of MPI in a build without it.
#include "comm/mpi.h"
#include "core/errors.h"

namespace zt {

bool mpi_built() { return false; }
std::string mpi_library() { return ""; }

std::unique_ptr<Communicator> mpi_communicator(int, bool, std::string*) {
  throw UserError(
      "this zerotrain was built without MPI. For ranks on this machine use `zerotrain --ranks N`; for mpirun install "
      "an MPI (Debian: apt-get install libopenmpi-dev openmpi-bin) and build again with -DZEROTRAIN_MPI=ON");
}

void mpi_finalize() {}

}  // namespace zt
