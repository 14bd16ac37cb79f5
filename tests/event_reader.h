// Reads TensorBoard's event files in a way of its own: checksums bit by bit, messages by their wire format.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace zt::test {

struct ReadEvent {
  double wall_time = 0.0;
  std::int64_t step = 0;
  std::string version;  // of a file's first event
  bool restarts = false;
  std::string tag;  // of a point
  float value = 0.0F;
};

inline std::uint32_t crc32c_by_bits(std::string_view bytes) {
  std::uint32_t crc = ~0U;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1U) != 0 ? crc >> 1 ^ 0x82F63B78U : crc >> 1;
  }
  return ~crc;
}

inline std::uint64_t little_endian(std::string_view bytes, std::size_t offset, int count) {
  if (offset + static_cast<std::size_t>(count) > bytes.size()) throw std::runtime_error("cut off");
  std::uint64_t value = 0;
  for (int i = count - 1; i >= 0; --i)
    value = value << 8 | static_cast<unsigned char>(bytes[offset + static_cast<std::size_t>(i)]);
  return value;
}

struct Field {
  int number = 0;
  std::uint64_t bits = 0;  // of a number
  std::string_view bytes;  // of a text or message
};

inline std::vector<Field> fields_of(std::string_view message) {
  std::size_t at = 0;
  const auto varint = [&] {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const std::uint64_t byte = little_endian(message, at++, 1);
      value |= (byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
  };
  std::vector<Field> fields;
  while (at < message.size()) {
    const std::uint64_t key = varint();
    Field field{static_cast<int>(key >> 3), 0, {}};
    switch (key & 7) {
      case 0: field.bits = varint(); break;
      case 1:
        field.bits = little_endian(message, at, 8);
        at += 8;
        break;
      case 5:
        field.bits = little_endian(message, at, 4);
        at += 4;
        break;
      case 2: {
        const std::size_t count = varint();
        if (count > message.size() - at) throw std::runtime_error("a field is longer than its message");
        field.bytes = message.substr(at, count);
        at += count;
        break;
      }
      default: throw std::runtime_error("an unknown kind of field");
    }
    fields.push_back(field);
  }
  return fields;
}

inline ReadEvent read_event(std::string_view message) {
  ReadEvent event;
  for (const Field& field : fields_of(message)) {
    if (field.number == 1) event.wall_time = std::bit_cast<double>(field.bits);
    if (field.number == 2) event.step = static_cast<std::int64_t>(field.bits);
    if (field.number == 3) event.version = field.bytes;
    if (field.number == 7) event.restarts = fields_of(field.bytes).at(0).bits == 1;
    if (field.number != 5) continue;
    for (const Field& part : fields_of(fields_of(field.bytes).at(0).bytes)) {
      if (part.number == 1) event.tag = part.bytes;
      if (part.number == 2) event.value = std::bit_cast<float>(static_cast<std::uint32_t>(part.bits));
    }
  }
  return event;
}

// std::runtime_error where framing or a checksum is wrong.
inline std::vector<ReadEvent> read_events(std::string_view file) {
  std::vector<ReadEvent> events;
  const auto check = [&](std::string_view bytes, std::size_t at) {
    const std::uint32_t crc = crc32c_by_bits(bytes);
    if (little_endian(file, at, 4) != static_cast<std::uint32_t>((crc >> 15 | crc << 17) + 0xA282EAD8U))
      throw std::runtime_error("a checksum is wrong");
  };
  for (std::size_t at = 0; at < file.size();) {
    const std::uint64_t length = little_endian(file, at, 8);
    check(file.substr(at, 8), at + 8);
    if (length > file.size() - at - 12) throw std::runtime_error("a record is longer than its file");
    const std::string_view message = file.substr(at + 12, length);
    check(message, at + 12 + length);
    events.push_back(read_event(message));
    at += length + 16;
  }
  return events;
}

// The points of each curve, step -> value, as TensorBoard understands files in their order.
inline std::map<std::string, std::map<std::int64_t, float>> curves_of(const std::vector<ReadEvent>& events) {
  std::map<std::string, std::map<std::int64_t, float>> curves;
  for (const ReadEvent& event : events) {
    if (event.restarts) {
      for (auto& [tag, points] : curves) points.erase(points.lower_bound(event.step), points.end());
    }
    if (!event.tag.empty()) curves[event.tag][event.step] = event.value;
  }
  return curves;
}

}  // namespace zt::test
