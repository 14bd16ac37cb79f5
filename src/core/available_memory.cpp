#include "core/available_memory.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace zt {
namespace {

// The number in a file, or a huge one ("max", no such file).
std::int64_t number_in(const std::string& path) {
  std::ifstream file(path);
  std::int64_t value = 0;
  return file >> value ? value : std::int64_t{1} << 62;
}

}  // namespace

std::int64_t available_memory_bytes() { return available_memory_below(""); }

std::int64_t available_memory_below(const std::string& root) {
  std::int64_t available = std::int64_t{1} << 62;
  std::ifstream meminfo(root + "/proc/meminfo");
  std::string line;
  while (std::getline(meminfo, line)) {
    if (line.starts_with("MemAvailable:")) available = std::stoll(line.substr(13)) * 1024;
  }
  // Control groups, version 2 and 1, as they appear inside a container.
  const std::int64_t limit_2 = number_in(root + "/sys/fs/cgroup/memory.max");
  if (limit_2 < std::int64_t{1} << 61) {
    available = std::min(available, limit_2 - std::min(limit_2, number_in(root + "/sys/fs/cgroup/memory.current")));
  }
  const std::int64_t limit_1 = number_in(root + "/sys/fs/cgroup/memory/memory.limit_in_bytes");
  if (limit_1 < std::int64_t{1} << 61) {
    available = std::min(available,
                         limit_1 - std::min(limit_1, number_in(root + "/sys/fs/cgroup/memory/memory.usage_in_bytes")));
  }
  return available;
}

}  // namespace zt
