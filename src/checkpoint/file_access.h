// Files read at any place and files written front to back, without mapping them. Every failure is a RunError with the
// path and the system's reason; calls that a signal interrupts, and those that move fewer bytes than asked for, go on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace zt {

// A regular file, open for reading. Reads may come from several threads.
class InputDescriptor {
 public:
  explicit InputDescriptor(const std::string& path);
  ~InputDescriptor();
  InputDescriptor(InputDescriptor&& other) noexcept;
  InputDescriptor& operator=(InputDescriptor&& other) noexcept;
  InputDescriptor(const InputDescriptor&) = delete;
  InputDescriptor& operator=(const InputDescriptor&) = delete;

  const std::string& path() const { return path_; }
  std::int64_t bytes() const { return bytes_; }  // when it was opened
  // [offset, offset + count) must lie within bytes(); a file that has become shorter since is an error.
  void read(std::int64_t offset, std::int64_t count, void* to) const;

 private:
  std::string path_;
  int file_ = -1;
  std::int64_t bytes_ = 0;
};

// A file made anew (what was there under its name is lost), written through a buffer of a MiB. What was not closed by
// close() is only what has left the buffer; the file then stays for its owner to remove.
class OutputDescriptor {
 public:
  explicit OutputDescriptor(const std::string& path);
  ~OutputDescriptor();
  OutputDescriptor(const OutputDescriptor&) = delete;
  OutputDescriptor& operator=(const OutputDescriptor&) = delete;

  void write(const void* bytes, std::int64_t count);
  // Writes what is left in the buffer, waits until the disk has everything, and closes.
  void close();
  std::int64_t bytes() const { return bytes_; }  // taken so far
  const std::string& path() const { return path_; }

 private:
  void flush();
  void write_through(const char* bytes, std::size_t count);
  [[noreturn]] void fail(int error) const;

  std::string path_;
  int file_ = -1;
  std::int64_t bytes_ = 0;
  std::vector<char> buffer_;
};

}  // namespace zt
