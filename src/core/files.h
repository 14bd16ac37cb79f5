// Writing files so that nobody ever finds half of one.
#pragma once

#include <string>
#include <string_view>

namespace zt {

// Writes to a temporary name beside `path`, syncs, renames. RunError with path and reason ("No space left on device").
void write_file_atomically(const std::string& path, std::string_view text);

// Waits until the disk has the names that a directory holds: a rename is lasting after that. RunError.
void sync_directory(const std::string& path);

// A file of lines, appended to. A line that cannot be written whole is taken back; then RunError. Lines of one call
// before it stay.
class LineFile {
 public:
  explicit LineFile(const std::string& path);  // created if missing
  ~LineFile();
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;
  void append(const std::string& line);       // without its newline
  void append_lines(std::string_view lines);  // each with its newline
  void append_whole(std::string_view bytes);  // no lines: all of it is taken back where a part cannot be written

 private:
  void append(std::string_view bytes, bool whole);

  std::string path_;
  int file_ = -1;
};

}  // namespace zt
