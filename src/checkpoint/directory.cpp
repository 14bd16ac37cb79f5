#include "checkpoint/directory.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "checkpoint/manifest.h"
#include "core/errors.h"
#include "core/files.h"

namespace zt {

namespace fs = std::filesystem;

namespace {

constexpr const char* prefix = "step-";
constexpr const char* temporary = ".tmp";
constexpr const char* replaced = ".replaced";
constexpr const char* removed = ".removed";

void rename_or_fail(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) throw RunError("cannot rename " + from.string() + " to " + to.string() + ": " + error.message());
}

template <typename Visit>
void visit_entries(const std::string& checkpoints, Visit&& visit) {
  std::error_code error;
  for (fs::directory_iterator entry(checkpoints, error), end; !error && entry != end; entry.increment(error))
    visit(*entry);
}

// step-00000200.tmp, and the like.
bool is_checkpoint_with(const std::string& name, const std::string& ending) {
  return name.ends_with(ending) && step_of_checkpoint(name.substr(0, name.size() - ending.size()));
}
bool is_left_over(const std::string& name) {
  return is_checkpoint_with(name, temporary) || is_checkpoint_with(name, replaced) || is_checkpoint_with(name, removed);
}

}  // namespace

std::string checkpoint_name(std::int64_t step) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%s%08lld", prefix, static_cast<long long>(step));
  return text.data();
}

std::optional<std::int64_t> step_of_checkpoint(const std::string& name) {
  const std::string start = prefix;
  if (!name.starts_with(start)) return std::nullopt;
  std::int64_t step = 0;
  const char* const end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + start.size(), end, step);
  if (error != std::errc() || stop != end || step < 0 || checkpoint_name(step) != name) return std::nullopt;
  return step;
}

CheckpointList list_checkpoints(const std::string& checkpoints) {
  CheckpointList list;
  visit_entries(checkpoints, [&](const fs::directory_entry& entry) {
    const std::string name = entry.path().filename().string();
    const auto step = step_of_checkpoint(name);
    std::error_code error;
    // One that may not be looked into counts: to pass over it would be to go on from an older one unasked.
    if (step && (fs::exists(entry.path() / manifest_name, error) || error)) {
      list.finished.push_back(*step);
    } else if (step || is_checkpoint_with(name, temporary)) {
      list.unfinished.push_back(name);
    }
  });
  std::sort(list.finished.begin(), list.finished.end());
  std::sort(list.unfinished.begin(), list.unfinished.end());
  return list;
}

std::optional<std::int64_t> latest_checkpoint(const std::string& checkpoints) {
  const fs::path path = fs::path(checkpoints) / "latest";
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  std::ifstream file(path);
  std::string name;
  std::getline(file, name);
  const auto step = step_of_checkpoint(name);
  if (!step) {
    throw RunError(path.string() + " is damaged: it should name a checkpoint as " + checkpoint_name(200) + " does");
  }
  if (!fs::exists(fs::path(checkpoints) / name, error))
    throw RunError(path.string() + " names " + name + ", which is not there");
  return step;
}

std::string temporary_checkpoint(const std::string& checkpoints, std::int64_t step) {
  return checkpoints + "/" + checkpoint_name(step) + temporary;
}

void publish_checkpoint(const std::string& checkpoints, std::int64_t step) {
  const std::string path = checkpoints + "/" + checkpoint_name(step);
  const std::string written = temporary_checkpoint(checkpoints, step);
  std::error_code error;
  if (!fs::exists(path, error)) {
    rename_or_fail(written, path);
  } else if (::renameat2(AT_FDCWD, written.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) != 0) {
    // A file system that cannot exchange two names: for a moment neither is there, and the checkpoint before counts.
    const std::string old = path + replaced;
    fs::remove_all(old, error);
    rename_or_fail(path, old);
    rename_or_fail(written, path);
  }
  sync_directory(checkpoints);
  write_file_atomically(checkpoints + "/latest", checkpoint_name(step) + "\n");
  sync_directory(checkpoints);
  remove_unfinished(checkpoints);
}

void prune_checkpoints(const std::string& checkpoints, std::int64_t keep) {
  const std::vector<std::int64_t> finished = list_checkpoints(checkpoints).finished;
  const auto count = static_cast<std::int64_t>(finished.size());
  std::error_code ignored;
  for (std::int64_t i = 0; i < count - keep; ++i) {
    const fs::path path = fs::path(checkpoints) / checkpoint_name(finished[static_cast<std::size_t>(i)]);
    // Under this name it is no checkpoint, however far the removal comes; the next one that is written removes the
    // rest.
    const fs::path doomed = path.string() + removed;
    fs::remove_all(doomed, ignored);
    fs::rename(path, doomed, ignored);
    fs::remove_all(doomed, ignored);
  }
}

void remove_unfinished(const std::string& checkpoints) {
  std::vector<fs::path> left;
  visit_entries(checkpoints, [&](const fs::directory_entry& entry) {
    if (is_left_over(entry.path().filename().string())) left.push_back(entry.path());
  });
  std::error_code ignored;
  for (const fs::path& path : left) fs::remove_all(path, ignored);
}

std::vector<std::string> set_aside_after(const std::string& checkpoints, std::int64_t step) {
  std::vector<std::string> names;
  for (const std::int64_t later : list_checkpoints(checkpoints).finished) {
    if (later <= step) continue;
    const std::string name = checkpoint_name(later);
    const fs::path path = fs::path(checkpoints) / name;
    fs::path aside = path.string() + ".set-aside";
    std::error_code error;
    for (int number = 2; fs::exists(aside, error); ++number)
      aside = path.string() + ".set-aside-" + std::to_string(number);
    rename_or_fail(path, aside);
    names.push_back(name);
  }
  return names;
}

}  // namespace zt
