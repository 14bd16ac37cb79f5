// Ranks started by mpirun. Of mpi_present.cpp and mpi_absent.cpp the build takes one.
#pragma once

#include <memory>
#include <string>

#include "comm/communicator.h"

namespace zt {

// Whether this program can speak MPI.
bool mpi_built();
std::string mpi_library();  // the library's name and version, "Open MPI v4.1.4"; does not start it. Empty: not built in

// Whether the environment says that this process is one of several that a launcher (mpirun, srun) has started. Does
// not start MPI. Also true if the launcher belongs to another MPI: mpi_communicator() then says so.
bool launched_by_mpi();

// This process's number among them, by the environment alone: 0 is the one that prints before MPI has started.
int launched_rank();

// For errors that every rank finds by itself before there is a communicator: true on the rank that is to print. The
// others get false, after a moment: mpirun ends all ranks as soon as one exits with an error, and the message is to
// be out by then.
bool prints_errors_before_mpi();

// Starts MPI (funneled: only the calling thread may use the communicator). Ranks of one machine read each other's
// memory through windows, unless `windows` is false: then every byte goes over MPI. ranks_per_node > 0: machines are
// cut into pretended nodes of so many ranks. `note`: on rank 0 receives a line for the user if windows were wanted
// but cannot be had. Errors: UserError if the launcher is that of another MPI, or MPI was not built in.
//
// Its abort() writes the message to stderr once, and ends all ranks by MPI_Abort with the exit code.
std::unique_ptr<Communicator> mpi_communicator(int ranks_per_node, bool windows, std::string* note = nullptr);

// At the end of a run that succeeded, on all ranks, after the communicator and its buffers are gone. After an error
// it must not be called: ending the process without it is what makes mpirun end the other ranks.
void mpi_finalize();

}  // namespace zt
