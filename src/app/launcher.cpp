#include "app/launcher.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "app/signals.h"
#include "comm/processes.h"
#include "comm/topology.h"
#include "core/errors.h"

namespace zt {
namespace {

using Clock = std::chrono::steady_clock;

// Blocks the signals that the parent waits for; restores mask and SIGCHLD's action at the end.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigemptyset(&waited_);
    for (const int signal : stop_signals()) sigaddset(&waited_, signal);
    sigaddset(&waited_, SIGCHLD);
    sigaddset(&waited_, SIGTSTP);
    sigprocmask(SIG_BLOCK, &waited_, &before_);
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;  // an inherited SIG_IGN would reap the children unseen
    sigaction(SIGCHLD, &standard, &child_before_);
  }
  ~BlockedSignals() { restore(); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

  void restore() const {
    sigaction(SIGCHLD, &child_before_, nullptr);
    sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  // 0 if none came in time.
  int next(int milliseconds) const {
    const timespec timeout{milliseconds / 1000, milliseconds % 1000 * 1'000'000L};
    const int signal = sigtimedwait(&waited_, nullptr, &timeout);
    return signal > 0 ? signal : 0;
  }

 private:
  sigset_t waited_{};
  sigset_t before_{};
  struct sigaction child_before_ {};
};

void bind_to_share_of(const std::vector<int>& cores, int rank, int ranks) {
  const auto count = static_cast<int>(cores.size());
  if (ranks > count) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int i = rank * count / ranks; i < (rank + 1) * count / ranks; ++i) {
    CPU_SET(static_cast<std::size_t>(cores[static_cast<std::size_t>(i)]), &set);
  }
  sched_setaffinity(0, sizeof set, &set);
}

void flush_streams() {
  std::cout.flush();
  std::cerr.flush();
  std::clog.flush();
  std::fflush(nullptr);
}

int run_body(ProcessGroup& group, int rank, const std::function<int(Communicator&)>& body) {
  ControlBlock& block = group.block();
  const auto fail = [&](int code, const std::string& message) {
    block.record_failure({rank, code, message});
    return code;
  };
  try {
    const auto communicator = group.join(rank);
    try {
      return body(*communicator);
    } catch (const PeerFailed& error) {
      block.record_notice({rank, 1, error.what()});
      return 1;
    } catch (const UserError& error) {
      return fail(2, error.what());
    } catch (const std::bad_alloc&) {
      return fail(1, "out of memory");
    } catch (const std::exception& error) {
      return fail(1, error.what());
    } catch (...) {
      return fail(1, "an exception of unknown type");
    }
  } catch (const std::exception& error) {
    return fail(1, error.what());
  }
}

[[noreturn]] void be_rank(ProcessGroup& group, int rank, const std::function<int(Communicator&)>& body) {
  const int code = run_body(group, rank, body);
  flush_streams();
  group.block().leave(rank);
  group.block().set_done(rank);
  _exit(code & 0xff);
}

class Ranks {
 public:
  Ranks(const LaunchOptions& options, ProcessGroup& group)
      : options_(options), block_(group.block()), processes_(static_cast<std::size_t>(options.ranks), 0) {}

  void started(int rank, pid_t process) {
    processes_[static_cast<std::size_t>(rank)] = process;
    ++living_;
  }
  bool any() const { return living_ > 0; }

  void signal_all(int signal) const {
    for (const pid_t process : processes_) {
      if (process > 0) kill(process, signal);
    }
  }
  // The first lets ranks come to a good end; at the second they stop at once, and one that does not answer is ended.
  void forward(int signal) {
    if (signal != SIGHUP && std::exchange(was_told_, true))
      deadline_ = std::min(deadline_.value_or(Clock::time_point::max()), Clock::now() + at_once);
    forwarded_.push_back(signal);
    signal_all(signal);
  }

  void reap() {
    for (int rank = 0; rank < options_.ranks; ++rank) {
      pid_t& process = processes_[static_cast<std::size_t>(rank)];
      int status = 0;
      if (process <= 0 || waitpid(process, &status, WNOHANG) != process) continue;
      const pid_t ended = process;
      process = 0;
      --living_;
      note_end(rank, ended, status);
    }
  }

  // After a failure the others get some seconds to end by themselves.
  void keep_deadline() {
    if (!deadline_ && block_.failure()) start_deadline();
    if (deadline_ && !killed_ && Clock::now() > *deadline_) {
      killed_ = true;
      signal_all(SIGKILL);
    }
  }
  void lose(int rank, const std::string& message) {
    block_.record_failure({rank, 1, message});
    start_deadline();
    if (lost_.empty()) lost_ = message;
  }

  bool has_lost_one() const { return !lost_.empty(); }
  // Says what went wrong, once, and returns the code of the whole.
  int finish() const {
    if (!lost_.empty()) {
      say(lost_ + (options_.ranks > 1 ? "; the other ranks have been stopped" : ""));
      return 1;
    }
    if (const auto failure = block_.failure(); failure && !failure->message.empty()) {
      say(failure->text());
      return failure->exit_code;
    }
    if (const auto notice = block_.notice(); notice && largest_code_ == 1 && forwarded_.empty()) {
      say(notice->text());
    }
    return largest_code_;
  }

 private:
  static void say(const std::string& message) { std::fprintf(stderr, "zerotrain: %s\n", message.c_str()); }
  bool was_forwarded(int signal) const {
    return std::find(forwarded_.begin(), forwarded_.end(), signal) != forwarded_.end();
  }
  void start_deadline() {
    if (deadline_) return;
    deadline_ = Clock::now() + std::chrono::milliseconds(static_cast<std::int64_t>(options_.grace_seconds * 1000));
  }

  void note_end(int rank, pid_t process, int status) {
    const std::string who = "rank " + std::to_string(rank) + " (process " + std::to_string(process) + ")";
    if (WIFSIGNALED(status)) {
      const int signal = WTERMSIG(status);
      if (was_forwarded(signal)) return stop_quietly(rank, 128 + signal);
      if (killed_ || block_.failure()) return;  // a consequence of a failure that is known
      lose(rank, who + " was killed by signal " + std::to_string(signal) + " (" + strsignal(signal) + ")");
      return;
    }
    const int code = WEXITSTATUS(status);
    largest_code_ = std::max(largest_code_, code);
    const bool by_signal = code > 128 && was_forwarded(code - 128);
    if (block_.is_done(rank)) {
      // Ranks that stop at a signal may need their time to save.
      if (code != 0 && !by_signal) start_deadline();
    } else if (by_signal) {
      stop_quietly(rank, code);
    } else if (!killed_ && !block_.failure()) {
      lose(rank, who + " ended with exit code " + std::to_string(code) + " before it had finished");
    }
  }
  // A rank died of a signal that all were sent: the others cannot go on without it.
  void stop_quietly(int rank, int code) {
    largest_code_ = std::max(largest_code_, code);
    block_.record_failure({rank, code, ""});
    start_deadline();
  }

  static constexpr std::chrono::milliseconds at_once{500};

  LaunchOptions options_;
  ControlBlock& block_;
  std::vector<pid_t> processes_;  // by rank; 0: not running
  int living_ = 0;
  std::vector<int> forwarded_;
  bool was_told_ = false;  // one that counts as the first has come (app/signals.h)
  std::optional<Clock::time_point> deadline_;
  bool killed_ = false;
  std::string lost_;
  int largest_code_ = 0;
};

}  // namespace

int launch_local_ranks(const LaunchOptions& options, const std::function<int(Communicator&)>& body) {
  ProcessGroup group(options.ranks, options.ranks_per_node);
  Ranks ranks(options, group);
  const std::vector<int> cores = allowed_cores();
  const pid_t parent = getpid();
  const BlockedSignals signals;
  flush_streams();
  for (int rank = 0; rank < options.ranks; ++rank) {
    const pid_t process = fork();
    if (process == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(1);  // the parent died before it was asked for
      setpgid(0, 0);
      bind_to_share_of(cores, rank, options.ranks);
      signals.restore();
      be_rank(group, rank, body);
    }
    if (process < 0) {
      ranks.lose(rank, "rank " + std::to_string(rank) + " could not be started: " + std::strerror(errno));
      break;
    }
    setpgid(process, process);  // whichever of the two comes first
    ranks.started(rank, process);
  }
  group.forked();
  while (ranks.any()) {
    const int signal = signals.next(100);
    if (signal == SIGTSTP) {
      ranks.signal_all(SIGSTOP);
      raise(SIGSTOP);
      ranks.signal_all(SIGCONT);
    } else if (signal != 0 && signal != SIGCHLD) {
      ranks.forward(signal);
    }
    ranks.reap();
    ranks.keep_deadline();
  }
  if (options.lost_a_rank != nullptr) *options.lost_a_rank = ranks.has_lost_one();
  return ranks.finish();
}

}  // namespace zt
