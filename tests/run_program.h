// The program as its users meet it: a process with arguments, an environment, a directory, output and an exit code.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace zt::test {

// A new empty directory, removed with all it holds at the end.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "zerotrain_test_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory: " + name);
    path_ = std::filesystem::canonical(name);
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline std::string contents_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The processes whose parent is `parent`, in the order of their numbers.
inline std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string stat = contents_of(entry.path() / "stat");  // number (name) state parent ...
    const std::size_t end_of_name = stat.rfind(')');
    if (end_of_name == std::string::npos || end_of_name + 4 > stat.size()) continue;
    if (std::atoi(stat.c_str() + end_of_name + 4) == parent) children.push_back(std::atoi(name.c_str()));
  }
  std::sort(children.begin(), children.end());
  return children;
}

// Whether a signal was sent to the process and has not reached it yet.
inline bool signal_is_pending(pid_t process, int signal) {
  std::istringstream status(contents_of("/proc/" + std::to_string(process) + "/status"));
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("SigPnd:") && !line.starts_with("ShdPnd:")) continue;
    if ((std::strtoull(line.c_str() + 7, nullptr, 16) >> (signal - 1) & 1U) != 0) return true;
  }
  return false;
}

struct ProgramOptions {
  std::filesystem::path directory;                               // where it runs
  std::vector<std::pair<std::string, std::string>> environment;  // added to this process's
  double time_limit = 120.0;                                     // seconds; it is killed then
  std::int64_t largest_file = 0;  // bytes; writing beyond fails like on a full disk. 0: no limit
};

struct ProgramResult {
  int code = -1;   // exit code, or -1
  int signal = 0;  // what it was killed by, or 0
  std::string out, err;
  bool timed_out = false;
  bool left_processes = false;  // some that it started outlived it by seconds
};

class Program {
 public:
  Program(const std::vector<std::string>& command, const ProgramOptions& options)
      : deadline_(Clock::now() + seconds(options.time_limit)) {
    // All that allocates comes before the fork.
    std::vector<std::string> variables;
    for (char** variable = environ; *variable != nullptr; ++variable) {
      const std::string_view name = std::string_view(*variable).substr(0, std::string_view(*variable).find('='));
      const bool replaced = std::any_of(options.environment.begin(), options.environment.end(),
                                        [&](const auto& added) { return added.first == name; });
      if (!replaced) variables.emplace_back(*variable);
    }
    for (const auto& [name, value] : options.environment) variables.push_back(name + "=" + value);
    std::vector<char*> arguments = pointers_to(command);
    std::vector<char*> environment = pointers_to(variables);
    const std::string directory = options.directory.string();
    std::array<int, 2> out{}, err{};
    if (pipe2(out.data(), O_CLOEXEC) != 0 || pipe2(err.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");

    process_ = fork();
    if (process_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      sigset_t none;
      sigemptyset(&none);
      sigprocmask(SIG_SETMASK, &none, nullptr);
      if (options.largest_file > 0) {
        const rlimit limit{static_cast<rlim_t>(options.largest_file), static_cast<rlim_t>(options.largest_file)};
        setrlimit(RLIMIT_FSIZE, &limit);
        signal(SIGXFSZ, SIG_IGN);  // write() reports an error instead
      }
      dup2(open("/dev/null", O_RDONLY), 0);
      dup2(out[1], 1);
      dup2(err[1], 2);
      if (!directory.empty() && chdir(directory.c_str()) != 0) _exit(126);
      execvpe(arguments.front(), arguments.data(), environment.data());
      _exit(127);
    }
    close(out[1]);
    close(err[1]);
    out_ = {out[0], &result_.out};
    err_ = {err[0], &result_.err};
    if (process_ < 0) throw std::runtime_error("no process");
  }
  ~Program() {
    if (!ended_) kill_all();
    out_.shut();
    err_.shut();
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  pid_t process() const { return process_; }
  void send(int signal) {
    if (running()) kill(process_, signal);
  }
  const std::string& out_so_far() {
    out_.read_available();
    return result_.out;
  }
  const std::string& err_so_far() {
    err_.read_available();
    return result_.err;
  }

  bool running() {
    out_.read_available();
    err_.read_available();
    if (ended_) return false;
    int status = 0;
    if (waitpid(process_, &status, WNOHANG) != process_) return true;
    ended_ = true;
    if (WIFEXITED(status)) result_.code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) result_.signal = WTERMSIG(status);
    return false;
  }

  // Waits until `condition` holds; false if the program has ended, or the time (0: its limit) is over before.
  bool wait_until(const std::function<bool()>& condition, double time = 0.0) {
    const auto end = time > 0.0 ? std::min(deadline_, Clock::now() + seconds(time)) : deadline_;
    while (running()) {
      if (condition()) return true;
      if (Clock::now() > end) return false;
      std::this_thread::sleep_for(poll_interval);
    }
    return false;
  }

  // Waits for its end and that of all processes that write to its outputs.
  ProgramResult finish() {
    wait_until([] { return false; });
    if (!ended_) {
      result_.timed_out = true;
      kill_all();
    }
    const auto end = Clock::now() + seconds(10.0);
    while (out_.is_open() || err_.is_open()) {
      out_.read_available();
      err_.read_available();
      if (Clock::now() > end) {
        result_.left_processes = true;
        break;
      }
      std::this_thread::sleep_for(poll_interval);
    }
    return result_;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds poll_interval{5};
  static Clock::duration seconds(double count) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(count));
  }
  static std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
    pointers.push_back(nullptr);
    return pointers;
  }

  class Output {
   public:
    Output() = default;
    Output(int file, std::string* text) : file_(file), text_(text) {
      fcntl(file_, F_SETFL, fcntl(file_, F_GETFL) | O_NONBLOCK);
    }
    bool is_open() const { return file_ >= 0; }
    void read_available() {
      std::array<char, 4096> part{};
      while (is_open()) {
        const ssize_t got = read(file_, part.data(), part.size());
        if (got < 0) return;
        if (got == 0) return shut();  // nobody holds the other end any more
        text_->append(part.data(), static_cast<std::size_t>(got));
      }
    }
    void shut() {
      if (file_ >= 0) close(file_);
      file_ = -1;
    }

   private:
    int file_ = -1;
    std::string* text_ = nullptr;
  };

  void kill_all() {
    for (const pid_t child : children_of(process_)) kill(child, SIGKILL);
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    ended_ = true;
  }

  Clock::time_point deadline_;
  pid_t process_ = -1;
  bool ended_ = false;
  ProgramResult result_;
  Output out_, err_;
};

inline ProgramResult run_program(const std::vector<std::string>& command, const ProgramOptions& options) {
  return Program(command, options).finish();
}

}  // namespace zt::test
