#include "checkpoint/resume_point.h"

#include <filesystem>

#include "checkpoint/directory.h"
#include "checkpoint/native.h"
#include "core/errors.h"

namespace zt {

namespace fs = std::filesystem;

namespace {

bool same_directory(const fs::path& a, const fs::path& b) {
  std::error_code error;
  return fs::weakly_canonical(a, error) == fs::weakly_canonical(b, error);
}

// `path` as the directory that its checkpoints lie in, and the step if it is one of them.
struct Named {
  fs::path checkpoints;
  std::optional<std::int64_t> step;
};
Named named_by(const std::string& path) {
  std::error_code error;
  const fs::path given = fs::path(path).lexically_normal();
  const fs::path plain = given.has_filename() ? given : given.parent_path();
  if (!fs::is_directory(plain, error)) {
    throw UserError("--resume: " + path + (fs::exists(plain, error) ? " is no directory" : " is not there") +
                    ": name a checkpoint or the directory of a run");
  }
  if (fs::exists(plain / manifest_name, error))
    return {plain.parent_path(), step_of_checkpoint(plain.filename().string())};
  if (fs::is_directory(plain / "checkpoints", error)) return {plain / "checkpoints", std::nullopt};
  return {plain, std::nullopt};
}

std::string offer_of(const fs::path& checkpoints, const std::vector<std::int64_t>& finished, std::size_t index) {
  if (index == 0) return "";
  return "; --resume-previous goes on from " + (checkpoints / checkpoint_name(finished[index - 1])).string();
}

Manifest manifest_of(const fs::path& checkpoint, bool every_byte) {
  const NativeCheckpoint native(checkpoint.string());
  if (every_byte) {
    native.verify();
    native.verify_weights_checksum();
  }
  return native.manifest();
}

}  // namespace

ResumeSearch find_resume_point(const std::string& path, const std::string& output_directory, bool previous) {
  ResumeSearch search;
  const fs::path own = fs::path(output_directory) / "checkpoints";
  const Named named = path.empty() ? Named{own, std::nullopt} : named_by(path);
  ResumePoint point;
  point.same_run = same_directory(named.checkpoints, own);
  if (!path.empty() && !named.step && fs::exists(fs::path(path) / manifest_name)) {
    // A checkpoint under a name of its own.
    if (previous) throw UserError("--resume-previous goes with the directory of a run, not with one checkpoint");
    point.directory = fs::path(path).lexically_normal().string();
    point.manifest = manifest_of(point.directory, false);
    point.same_run = false;
    search.point = std::move(point);
    return search;
  }
  const CheckpointList list = list_checkpoints(named.checkpoints.string());
  for (const std::string& name : list.unfinished) {
    search.notices.push_back(
        "--resume: " + (named.checkpoints / name).string() +
        (step_of_checkpoint(name) ? " has no manifest.json: passed over" : " was never finished: passed over"));
  }
  const std::vector<std::int64_t>& finished = list.finished;
  if (finished.empty()) {
    if (path.empty() || point.same_run) return search;
    throw UserError("--resume: " + path + " holds no finished checkpoint");
  }
  std::size_t index = finished.size() - 1;
  if (named.step) {
    while (index > 0 && finished[index] != *named.step) --index;
  } else {
    try {
      const auto latest = latest_checkpoint(named.checkpoints.string());
      if (latest != finished.back() && !previous) {
        search.notices.push_back(
            "--resume: " + checkpoint_name(finished.back()) + " is the newest whole checkpoint, " +
            (latest ? "though latest names " + checkpoint_name(*latest) : "though latest is missing"));
      }
    } catch (const RunError& error) {
      if (!previous)
        throw RunError(std::string(error.what()) + offer_of(named.checkpoints, finished, finished.size()) +
                       ", --resume " + (named.checkpoints / checkpoint_name(finished.back())).string() + " too");
      search.notices.push_back(std::string("--resume-previous: ") + error.what());
      ++index;  // what latest named is lost: the newest that is left is the one before
    }
  }
  if (previous) {
    if (index == 0) throw RunError("--resume-previous: there is no checkpoint before " + checkpoint_name(finished[0]));
    if (index < finished.size())
      search.notices.push_back("--resume-previous: passing over " +
                               (named.checkpoints / checkpoint_name(finished[index])).string());
    --index;
  }
  while (true) {
    point.directory = (named.checkpoints / checkpoint_name(finished[index])).string();
    try {
      point.manifest = manifest_of(point.directory, previous);
      break;
    } catch (const RunError& error) {
      if (!previous || index == 0) throw RunError(error.what() + offer_of(named.checkpoints, finished, index));
      search.notices.push_back(std::string("--resume-previous: passing over ") + error.what());
      --index;
    }
  }
  point.offer = offer_of(named.checkpoints, finished, index);
  search.point = std::move(point);
  return search;
}

}  // namespace zt
