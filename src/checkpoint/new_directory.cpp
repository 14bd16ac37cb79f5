#include "checkpoint/new_directory.h"

#include <system_error>

#include "core/errors.h"
#include "core/files.h"
#include "data/message_text.h"

namespace zt {

namespace fs = std::filesystem;

NewDirectory::NewDirectory(const std::string& wanted) : wanted_(wanted) {
  const auto fail = [&](const std::string& reason) {
    throw UserError("--output " + shown_path(wanted) + ": " + reason);
  };
  if (wanted.empty() || wanted.find('\0') != std::string::npos) fail("name a directory");
  if (!wanted_.has_filename()) wanted_ = wanted_.parent_path();  // "x/"
  std::error_code error;
  const fs::file_status status = fs::status(wanted_, error);
  if (fs::exists(status)) {
    if (!fs::is_directory(status)) fail("is a file; name a directory that is to be made");
    if (!fs::is_empty(wanted_, error) || error) fail("holds files already; name another directory, or remove it");
  }
  partial_ = wanted_;
  partial_ += ".partial";
  unfinished_.emplace(partial_.string(), Unfinished::Kind::directory);
  fs::remove_all(partial_, error);  // of an attempt that was killed
  fs::create_directories(partial_, error);
  if (error) fail("cannot be made: " + error.message());
}

NewDirectory::~NewDirectory() {
  std::error_code ignored;
  if (!is_finished_) fs::remove_all(partial_, ignored);
}

void NewDirectory::finish() {
  sync_directory(partial_.string());
  std::error_code error;
  fs::rename(partial_, wanted_, error);  // also onto an empty directory
  if (error) throw RunError("cannot write " + shown_path(wanted_.string()) + ": " + error.message());
  is_finished_ = true;
  sync_directory(wanted_.has_parent_path() ? wanted_.parent_path().string() : ".");
}

}  // namespace zt
