#include "train/event_file.h"

#include <array>
#include <bit>

namespace zt {

namespace {

constexpr std::array<std::uint32_t, 256> crc32c_table = [] {
  constexpr std::uint32_t polynomial = 0x82F63B78;  // 0x1EDC6F41 with its bits reversed
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t remainder = byte;
    for (int bit = 0; bit < 8; ++bit) remainder = remainder >> 1 ^ ((remainder & 1) != 0 ? polynomial : 0);
    table[byte] = remainder;
  }
  return table;
}();

void append_little_endian(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
}

// A protobuf message: fields as they are added, each with its number and how it is written. As proto3 does, a number
// that is 0 is left out, unless it is one of several alternatives.
class Message {
 public:
  void add_double(int field, double value) {
    if (value == 0.0) return;
    begin(field, WireType::eight_bytes);
    append_little_endian(bytes_, std::bit_cast<std::uint64_t>(value), 8);
  }
  void add_alternative_float(int field, float value) {
    begin(field, WireType::four_bytes);
    append_little_endian(bytes_, std::bit_cast<std::uint32_t>(value), 4);
  }
  void add_integer(int field, std::int64_t value) {
    if (value == 0) return;
    begin(field, WireType::varint);
    add_varint(static_cast<std::uint64_t>(value));
  }
  void add_bytes(int field, std::string_view value) {
    begin(field, WireType::with_length);
    add_varint(value.size());
    bytes_ += value;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  enum class WireType : std::uint8_t { varint = 0, eight_bytes = 1, with_length = 2, four_bytes = 5 };

  void begin(int field, WireType type) {
    add_varint(static_cast<std::uint64_t>(field) << 3 | static_cast<std::uint64_t>(type));
  }
  // Seven bits a byte, the lowest first; the eighth says that more follow.
  void add_varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>((value & 0x7F) | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

// Numbers of fields, by message.
namespace event {
constexpr int wall_time = 1, step = 2, file_version = 3, summary = 5, session_log = 7;
}
namespace summary {
constexpr int value = 1;
}
namespace summary_value {
constexpr int tag = 1, simple_value = 2;
}
namespace session_log {
constexpr int status = 1;
constexpr std::int64_t start = 1;
}  // namespace session_log

std::uint32_t masked_crc32c(std::string_view bytes) {
  const std::uint32_t crc = crc32c(bytes);
  return std::rotr(crc, 15) + 0xA282EAD8U;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t remainder = 0xFFFFFFFF;
  for (const char c : bytes) {
    remainder = remainder >> 8 ^ crc32c_table[(remainder ^ static_cast<unsigned char>(c)) & 0xFF];
  }
  return ~remainder;
}

std::string version_event(double wall_time) {
  Message message;
  message.add_double(event::wall_time, wall_time);
  message.add_bytes(event::file_version, "brain.Event:2");
  return message.bytes();
}

std::string restart_event(double wall_time, std::int64_t step) {
  Message log;
  log.add_integer(session_log::status, session_log::start);
  Message message;
  message.add_double(event::wall_time, wall_time);
  message.add_integer(event::step, step);
  message.add_bytes(event::session_log, log.bytes());
  return message.bytes();
}

std::string scalar_event(double wall_time, std::int64_t step, std::string_view tag, double value) {
  Message point;
  point.add_bytes(summary_value::tag, tag);
  point.add_alternative_float(summary_value::simple_value, static_cast<float>(value));
  Message points;
  points.add_bytes(summary::value, point.bytes());
  Message message;
  message.add_double(event::wall_time, wall_time);
  message.add_integer(event::step, step);
  message.add_bytes(event::summary, points.bytes());
  return message.bytes();
}

void append_record(std::string& out, std::string_view message) {
  std::string length;
  append_little_endian(length, message.size(), 8);
  out += length;
  append_little_endian(out, masked_crc32c(length), 4);
  out += message;
  append_little_endian(out, masked_crc32c(message), 4);
}

}  // namespace zt
