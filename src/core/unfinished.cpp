#include "core/unfinished.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <vector>

namespace zt {

namespace {

struct Entry {
  const Unfinished* owner;
  std::string path;
  Unfinished::Kind kind;
};

struct Registry {
  std::mutex mutex;
  std::vector<Entry> entries;
};

// Never destroyed: a thread may still write while the process ends.
Registry& registry() {
  static Registry* const all = new Registry;
  return *all;
}

void remove_directory(const std::string& path) {
  // Files that a thread opens by their path while the directory is emptied would stay. A rename is at once: either the
  // directory has its own name already, then there is nothing to remove, or nobody finds it any more.
  const std::string doomed = path + "." + std::to_string(::getpid());
  if (::rename(path.c_str(), doomed.c_str()) != 0) return;
  std::error_code ignored;
  std::filesystem::remove_all(doomed, ignored);
}

}  // namespace

Unfinished::Unfinished(const std::string& path, Kind kind) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.entries.push_back({this, path, kind});
}

Unfinished::~Unfinished() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.entries, [this](const Entry& entry) { return entry.owner == this; });
}

void remove_unfinished() {
  Registry& all = registry();
  all.mutex.lock();  // and never unlocked
  for (const Entry& entry : all.entries) {
    if (entry.kind == Unfinished::Kind::directory) {
      remove_directory(entry.path);
    } else {
      ::unlink(entry.path.c_str());
    }
  }
}

}  // namespace zt
