// XXH3-64, the checksum of files and tensors in checkpoints. It finds damage, not malice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace zt {

// Over bytes that come in pieces: how they are cut does not matter.
class RunningChecksum {
 public:
  RunningChecksum();
  ~RunningChecksum();
  RunningChecksum(RunningChecksum&& other) noexcept;
  RunningChecksum& operator=(RunningChecksum&& other) noexcept;
  RunningChecksum(const RunningChecksum&) = delete;
  RunningChecksum& operator=(const RunningChecksum&) = delete;

  void add(const void* bytes, std::size_t count);
  std::uint64_t value() const;  // of what was added so far
  void restart();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::uint64_t checksum_of(std::string_view bytes);
// Reads the file once, front to back, through a small buffer. RunError where it cannot be read.
std::uint64_t checksum_of_file(const std::string& path);

// The checksum of a model's weights (weights_checksum of manifest.json and summary.json): adds elements of one tensor
// from `first` on, as the operation Checksum does (device/operations.h).
void add_to_weights_checksum(std::uint64_t& sum, std::size_t tensor, std::int64_t first, std::span<const float> values);

// 16 lowercase hexadecimal digits, and back; nothing where the text is not that.
std::string checksum_text(std::uint64_t checksum);
std::optional<std::uint64_t> parse_checksum(std::string_view text);

}  // namespace zt
