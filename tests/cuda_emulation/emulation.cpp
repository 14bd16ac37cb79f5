#include "emulation.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include "device_memory.h"
#include "emulation_state.h"

namespace zt::emulation {
namespace {

struct Fault {
  int remaining = 0;
  int device = -1;
};

struct State {
  std::mutex mutex;
  Settings settings;
  std::array<Fault, 3> faults;
  int collectors = 0;
  std::vector<std::string> findings;
};

std::optional<std::string_view> variable(const char* name) {
  const char* value = std::getenv((std::string("ZEROTRAIN_EMULATION_") + name).c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

template <typename T, std::size_t N>
void read_name(const char* name, const std::array<std::string_view, N>& names, T* result) {
  const auto value = variable(name);
  if (!value) return;
  for (std::size_t i = 0; i < N; ++i) {
    if (names[i] == *value) {
      *result = static_cast<T>(i);
      return;
    }
  }
  throw std::invalid_argument(std::string("ZEROTRAIN_EMULATION_") + name + " cannot be " + std::string(*value));
}

double read_number(const char* name, double otherwise, double least, double most) {
  const auto value = variable(name);
  if (!value) return otherwise;
  const std::string text(*value);
  std::size_t read = 0;
  double number = 0.0;
  try {
    number = std::stod(text, &read);
  } catch (const std::exception&) {
    read = 0;
  }
  if (read == text.size() && number >= least && number <= most) return number;
  std::ostringstream message;
  message << "ZEROTRAIN_EMULATION_" << name << " cannot be " << text << ": it is a number from " << least << " to "
          << most;
  throw std::invalid_argument(message.str());
}

constexpr std::array<std::string_view, 3> orders = {"forward", "reversed", "shuffled"};
constexpr std::array<std::string_view, 3> stream_modes = {"eager", "lazy", "lazy_shuffled"};
constexpr std::array<std::string_view, 5> drivers = {"present", "missing", "for_linking", "too_old", "not_ready"};
constexpr std::array<std::string_view, 3> calls = {"allocation", "launch", "collective"};

void read_environment(State& state) {
  Settings& settings = state.settings;
  read_name("ORDER", orders, &settings.order);
  read_name("STREAMS", stream_modes, &settings.streams);
  settings.seed = static_cast<std::uint64_t>(read_number("SEED", 1, 0, 1e15));
  settings.devices = static_cast<int>(read_number("DEVICES", 1, 0, 8));
  settings.device_memory = static_cast<std::size_t>(read_number("MEMORY_MB", 1024, 1, 1 << 20)) << 20;
  settings.protect = read_number("PROTECT", 1, 0, 1) != 0;
  settings.patience = read_number("PATIENCE", 60, 0, 1e6);
  read_name("DRIVER", drivers, &settings.driver);
  settings.capability = static_cast<int>(read_number("CAPABILITY", 90, 10, 999));
  settings.kernels = read_number("KERNELS", 1, 0, 1) != 0;
  if (const auto fault = variable("FAIL")) {
    const std::size_t colon = fault->find(':');
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (colon != std::string_view::npos && fault->substr(0, colon) == calls[i]) {
        const std::string count(fault->substr(colon + 1));
        if (count.empty() || count.find_first_not_of("0123456789") != std::string::npos || count.size() > 9) break;
        state.faults[i].remaining = std::stoi(count);
        if (state.faults[i].remaining > 0) return;
      }
    }
    throw std::invalid_argument("ZEROTRAIN_EMULATION_FAIL is CALL:N, not " + std::string(*fault));
  }
}

State& state() {
  static State& instance = []() -> State& {
    static State made;
    read_environment(made);
    return made;
  }();
  return instance;
}

}  // namespace

Settings settings() {
  const std::lock_guard lock(state().mutex);
  return state().settings;
}

void configure(const Settings& wanted) {
  if (wanted.devices < 0 || wanted.devices > max_devices) throw std::invalid_argument("0 to 8 devices can be emulated");
  const Settings before = settings();
  {
    const std::lock_guard lock(state().mutex);
    state().settings = wanted;
  }
  if (before.devices != wanted.devices || before.device_memory != wanted.device_memory) release_all_device_memory();
}

void fail_nth(Call call, int n, int device) {
  const std::lock_guard lock(state().mutex);
  state().faults[static_cast<std::size_t>(call)] = {n, device};
}

bool is_to_fail(Call call, int device) {
  const std::lock_guard lock(state().mutex);
  Fault& fault = state().faults[static_cast<std::size_t>(call)];
  if (fault.remaining == 0 || (fault.device >= 0 && fault.device != device)) return false;
  return --fault.remaining == 0;
}

Findings::Findings() {
  const std::lock_guard lock(state().mutex);
  if (state().collectors++ == 0) state().findings.clear();
}

Findings::~Findings() {
  const std::lock_guard lock(state().mutex);
  --state().collectors;
}

std::vector<std::string> Findings::all() const {
  const std::lock_guard lock(state().mutex);
  return state().findings;
}

void report(const std::string& text) {
  const std::lock_guard lock(state().mutex);
  if (state().collectors > 0) {
    state().findings.push_back(text);
    return;
  }
  std::fprintf(stderr, "GPU emulation: %s\n", text.c_str());
  std::fflush(stderr);
  std::abort();
}

std::string text_of(const std::source_location& where) {
  const std::string_view path = where.file_name();
  const std::size_t slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1)) + ":" +
         std::to_string(where.line());
}

std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

}  // namespace zt::emulation
