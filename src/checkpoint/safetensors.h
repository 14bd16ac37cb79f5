// Files of tensors in the safetensors format: 8 bytes with the length of a header, the header (JSON: a tensor's name,
// format, shape, and where its bytes are), the bytes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "checkpoint/checksum.h"
#include "checkpoint/file_access.h"
#include "checkpoint/stored_type.h"

namespace zt {

struct StoredTensor {
  std::string name{};
  StoredType type = StoredType::f32;
  std::vector<std::int64_t> shape{};
  std::int64_t elements = 0;
  std::int64_t offset = 0;  // of the data, in bytes from the start of the file
  std::int64_t bytes = 0;
};

using TensorMetadata = std::map<std::string, std::string>;

struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;  // in the order of their data
  TensorMetadata metadata;
};

constexpr std::int64_t largest_safetensors_header = 100'000'000;  // bytes; the format's own limit

// The header's text, without its length, and the size of the whole file; `file` stands in messages. All that the format
// promises is checked: formats known, sizes that fit the shapes, data inside the file, without overlap or hole, names
// and keys once. RunError names file, tensor and reason.
SafetensorsHeader parse_safetensors_header(std::string_view text, std::int64_t file_bytes, const std::string& file);

// A file whose header has been checked, open for reading. Memory is taken for the header alone. Threads may read at the
// same time.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);  // RunError

  const std::string& path() const { return file_.path(); }
  std::int64_t bytes() const { return file_.bytes(); }
  const std::vector<StoredTensor>& tensors() const { return header_.tensors; }  // in the order of their data
  const TensorMetadata& metadata() const { return header_.metadata; }
  const StoredTensor* find(std::string_view name) const;  // null: there is none

  // Elements [first, first + count) of a tensor of this file, as they are stored.
  void read(const StoredTensor& tensor, std::int64_t first, std::int64_t count, void* raw) const;
  // As fp32. RunError where the tensor's format does not become fp32 (stored_type.h).
  void read_floats(const StoredTensor& tensor, std::int64_t first, std::int64_t count, float* out) const;
  std::uint64_t checksum(const StoredTensor& tensor) const;  // of its bytes

 private:
  InputDescriptor file_;
  SafetensorsHeader header_;
  std::unordered_map<std::string_view, std::size_t> index_;  // names live in header_
};

struct TensorToWrite {
  std::string name{};
  StoredType type = StoredType::f32;
  std::vector<std::int64_t> shape{};
};

// Writes a file front to back: all tensors are named first, then their data are appended in that order, in pieces of
// any size. RunError with path and reason, from any call.
class SafetensorsWriter {
 public:
  SafetensorsWriter(const std::string& path, const std::vector<TensorToWrite>& tensors, const TensorMetadata& metadata);

  void append(const void* bytes, std::int64_t count);
  // Waits until the disk has everything, and closes. RunError if something that was announced has not been appended.
  void finish();

  std::int64_t bytes() const { return total_; }                          // of the whole file, header included
  const std::vector<StoredTensor>& tensors() const { return tensors_; }  // where each lies
  // Of the whole file, and of each tensor's bytes, as far as they have been written.
  std::uint64_t file_checksum() const { return file_checksum_.value(); }
  const std::vector<std::uint64_t>& tensor_checksums() const { return tensor_checksums_; }

 private:
  void finish_tensors();  // that have all their bytes

  OutputDescriptor file_;
  std::vector<StoredTensor> tensors_;
  std::int64_t total_ = 0;
  std::size_t current_ = 0;              // the tensor that the next byte belongs to
  std::int64_t written_of_current_ = 0;  // bytes
  RunningChecksum file_checksum_, tensor_checksum_;
  std::vector<std::uint64_t> tensor_checksums_;
};

}  // namespace zt
