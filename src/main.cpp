// The one place that catches: prints one message on one rank and ends the world.

#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "app/run.h"
#include "comm/mpi.h"
#include "core/errors.h"

namespace {

int say_once(const std::string& message, int code) {
  if (zt::prints_errors_before_mpi()) {
    std::fprintf(stderr, "zerotrain: %s\n", message.c_str());
    std::fflush(stderr);
  }
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  const auto start = std::chrono::steady_clock::now();
  // A limit on the size of files (ulimit -f) is then an error of the write that meets it, which says so.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    const int code = zt::run(argc, argv, start);
    // What was asked for may be on stdout alone.
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) throw zt::RunError("cannot write to stdout");
    return code;
  } catch (const zt::UserError& error) {
    return say_once(error.what(), 2);
  } catch (const zt::PeerFailed&) {
    return 1;  // the rank that failed has said why
  } catch (const std::bad_alloc&) {
    return say_once("out of memory", 1);
  } catch (const std::exception& error) {
    return say_once(error.what(), 1);
  }
}
