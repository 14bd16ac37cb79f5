#include "checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "core/errors.h"
#include "data/message_text.h"

namespace zt {
namespace {

constexpr std::int64_t piece_bytes = 1 << 16;  // of what is converted or checked in passing

SafetensorsHeader read_header(const InputDescriptor& file) {
  const auto fail = [&](const std::string& reason) {
    throw RunError(shown_path(file.path()) + " is no whole safetensors file: " + reason);
  };
  if (file.bytes() < 8) fail("it has " + counted(file.bytes(), "byte") + ", fewer than the length of a header takes");
  std::uint64_t length = 0;
  file.read(0, 8, &length);
  if (length > static_cast<std::uint64_t>(largest_safetensors_header)) {
    fail("its first 8 bytes announce a header of " + std::to_string(length) + " bytes; the format allows " +
         std::to_string(largest_safetensors_header));
  }
  if (static_cast<std::int64_t>(length) > file.bytes() - 8) {
    fail("its first 8 bytes announce a header of " + std::to_string(length) + " bytes, and " +
         std::to_string(file.bytes() - 8) + " follow");
  }
  std::string text(static_cast<std::size_t>(length), '\0');
  file.read(8, static_cast<std::int64_t>(length), text.data());
  return parse_safetensors_header(text, file.bytes(), file.path());
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path) : file_(path), header_(read_header(file_)) {
  index_.reserve(header_.tensors.size());
  for (std::size_t i = 0; i < header_.tensors.size(); ++i) index_.emplace(header_.tensors[i].name, i);
}

const StoredTensor* SafetensorsFile::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &header_.tensors[found->second];
}

void SafetensorsFile::read(const StoredTensor& tensor, std::int64_t first, std::int64_t count, void* raw) const {
  if (first < 0 || count < 0 || first > tensor.elements - count) {
    throw RunError(shown_path(path()) + ": tensor \"" + shown(tensor.name, 120) + "\" has " +
                   std::to_string(tensor.elements) + " elements; " + std::to_string(count) + " from element " +
                   std::to_string(first) + " on were asked for");
  }
  const std::int64_t size = size_of(tensor.type);
  file_.read(tensor.offset + first * size, count * size, raw);
}

void SafetensorsFile::read_floats(const StoredTensor& tensor, std::int64_t first, std::int64_t count,
                                  float* out) const {
  if (!becomes_float(tensor.type)) {
    throw RunError(shown_path(path()) + ": tensor \"" + shown(tensor.name, 120) + "\" is stored as " +
                   std::string(name_of(tensor.type)) + "; weights are F32, F16, BF16 or F64");
  }
  const std::int64_t size = size_of(tensor.type);
  if (size <= static_cast<std::int64_t>(sizeof(float))) {
    // Read to the end of where they go, and spread out from there.
    char* raw = reinterpret_cast<char*>(out) + count * (static_cast<std::int64_t>(sizeof(float)) - size);
    read(tensor, first, count, raw);
    to_floats(tensor.type, raw, count, out);
    return;
  }
  std::vector<char> raw(static_cast<std::size_t>(std::min(count * size, piece_bytes)));
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t part = std::min(count - done, piece_bytes / size);
    read(tensor, first + done, part, raw.data());
    to_floats(tensor.type, raw.data(), part, out + done);
    done += part;
  }
}

std::uint64_t SafetensorsFile::checksum(const StoredTensor& tensor) const {
  std::vector<char> buffer(static_cast<std::size_t>(std::min<std::int64_t>(tensor.bytes, 1 << 20)));
  RunningChecksum checksum;
  for (std::int64_t done = 0; done < tensor.bytes;) {
    const std::int64_t part = std::min(tensor.bytes - done, static_cast<std::int64_t>(buffer.size()));
    file_.read(tensor.offset + done, part, buffer.data());
    checksum.add(buffer.data(), static_cast<std::size_t>(part));
    done += part;
  }
  return checksum.value();
}

}  // namespace zt
