#include "checkpoint/checksum.h"

// The algorithm comes with its header, so nothing is linked.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <bit>
#include <charconv>
#include <vector>

#include "checkpoint/file_access.h"
#include "core/random.h"

namespace zt {

struct RunningChecksum::State {
  XXH3_state_t state;
};

RunningChecksum::RunningChecksum() : state_(std::make_unique<State>()) { restart(); }
RunningChecksum::~RunningChecksum() = default;
RunningChecksum::RunningChecksum(RunningChecksum&& other) noexcept = default;
RunningChecksum& RunningChecksum::operator=(RunningChecksum&& other) noexcept = default;

void RunningChecksum::restart() { XXH3_64bits_reset(&state_->state); }

void RunningChecksum::add(const void* bytes, std::size_t count) {
  if (count > 0) XXH3_64bits_update(&state_->state, bytes, count);
}

std::uint64_t RunningChecksum::value() const { return XXH3_64bits_digest(&state_->state); }

std::uint64_t checksum_of(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::uint64_t checksum_of_file(const std::string& path) {
  const InputDescriptor file(path);
  constexpr std::int64_t piece = 1 << 20;
  std::vector<char> buffer(static_cast<std::size_t>(piece));
  RunningChecksum checksum;
  for (std::int64_t offset = 0; offset < file.bytes(); offset += piece) {
    const std::int64_t count = std::min(piece, file.bytes() - offset);
    file.read(offset, count, buffer.data());
    checksum.add(buffer.data(), static_cast<std::size_t>(count));
  }
  return checksum.value();
}

void add_to_weights_checksum(std::uint64_t& sum, std::size_t tensor, std::int64_t first,
                             std::span<const float> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t place =
        mix64((static_cast<std::uint64_t>(tensor) << 40) ^ (static_cast<std::uint64_t>(first) + i));
    sum += mix64(place ^ std::bit_cast<std::uint32_t>(values[i]));
  }
}

std::string checksum_text(std::uint64_t checksum) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text(16, '0');
  for (std::size_t i = 0; i < 16; ++i) text[15 - i] = digits[checksum >> (4 * i) & 15U];
  return text;
}

std::optional<std::uint64_t> parse_checksum(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  if (text.size() != 16 || text.find_first_not_of(digits) != std::string_view::npos) return std::nullopt;
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return value;
}

}  // namespace zt
