// What becomes of a process that does something: run in a forked child.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <functional>
#include <string>

#include "catch_compat.h"

namespace zt::emulation {

struct Ending {
  int signal = 0;  // 0: it ended by itself
  int code = 0;
  std::string text;  // what it wrote to stderr
};

inline Ending ending_of(const std::function<void()>& run) {
  std::array<int, 2> pipe_ends = {};
  REQUIRE(pipe(pipe_ends.data()) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    dup2(pipe_ends[1], STDERR_FILENO);
    if (std::freopen("/dev/null", "w", stdout) == nullptr) _exit(1);
    signal(SIGABRT, SIG_DFL);  // Catch's own handler would report a failed test
    run();
    _exit(0);
  }
  close(pipe_ends[1]);
  Ending ending;
  std::array<char, 4096> buffer = {};
  for (ssize_t got = 0; (got = read(pipe_ends[0], buffer.data(), buffer.size())) > 0;) {
    ending.text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  close(pipe_ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  ending.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  ending.code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  return ending;
}

}  // namespace zt::emulation
