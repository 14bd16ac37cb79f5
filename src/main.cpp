// The one place that catches: prints one message on one rank and ends the world.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>

#include "app/run.h"
#include "core/errors.h"

namespace {

// The rank that a launcher gave this process, known before MPI starts.
int rank_of_environment() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}) {
    if (const char* text = std::getenv(name)) return std::atoi(text);
  }
  return 0;
}

// An error that all ranks have found: the first one says it; the others wait until it is out, as a launcher kills all
// when one has ended.
int say_once(const std::string& message, int code) {
  if (rank_of_environment() == 0) {
    std::fprintf(stderr, "zerotrain: %s\n", message.c_str());
    std::fflush(stderr);
  } else {
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  const auto start = std::chrono::steady_clock::now();
  try {
    return zt::run(argc, argv, start);
  } catch (const zt::UserError& error) {
    return say_once(error.what(), 2);
  } catch (const zt::PeerFailed&) {
    return 1;  // the rank that failed has said why
  } catch (const std::exception& error) {
    return say_once(error.what(), 1);
  }
}
