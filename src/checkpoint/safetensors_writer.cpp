#include <algorithm>
#include <limits>
#include <unordered_set>

#include "checkpoint/safetensors.h"
#include "core/errors.h"
#include "core/json.h"
#include "data/message_text.h"

namespace zt {
namespace {

constexpr std::size_t alignment = 64;  // bytes; where data start in the file

// Places the tensors one after the other; offsets count from the start of the data.
std::vector<StoredTensor> place(const std::vector<TensorToWrite>& tensors, const std::string& path) {
  std::vector<StoredTensor> placed;
  placed.reserve(tensors.size());
  std::unordered_set<std::string_view> names;
  std::int64_t offset = 0;
  for (const TensorToWrite& tensor : tensors) {
    const auto fail = [&](const std::string& reason) {
      throw RunError("cannot write " + shown_path(path) + ": tensor \"" + shown(tensor.name, 120) + "\" " + reason);
    };
    if (tensor.name.empty() || tensor.name == "__metadata__") fail("has a name that no tensor can have");
    if (!names.insert(tensor.name).second) fail("is given twice");
    std::int64_t elements = 1;
    for (const std::int64_t extent : tensor.shape) {
      if (extent < 0) fail("has a negative extent");
      if (__builtin_mul_overflow(elements, extent, &elements)) fail("has more elements than can be counted");
    }
    StoredTensor stored{.name = tensor.name, .type = tensor.type, .shape = tensor.shape, .elements = elements};
    stored.offset = offset;
    if (__builtin_mul_overflow(elements, size_of(tensor.type), &stored.bytes) ||
        __builtin_add_overflow(offset, stored.bytes, &offset)) {
      fail("has more bytes than a file can");
    }
    placed.push_back(std::move(stored));
  }
  return placed;
}

// The first bytes of the file: the header's length, the header, spaces up to where data start.
std::string head(const std::vector<StoredTensor>& tensors, const TensorMetadata& metadata, const std::string& path) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  for (const StoredTensor& tensor : tensors) {
    header[tensor.name] = {{"dtype", name_of(tensor.type)},
                           {"shape", tensor.shape},
                           {"data_offsets", {tensor.offset, tensor.offset + tensor.bytes}}};
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::exception&) {
    throw RunError("cannot write " + shown_path(path) + ": a name or a text for its header is not UTF-8");
  }
  text.resize((8 + text.size() + alignment - 1) / alignment * alignment - 8, ' ');
  if (text.size() > static_cast<std::size_t>(largest_safetensors_header)) {
    throw RunError("cannot write " + shown_path(path) + ": the header of " + std::to_string(tensors.size()) +
                   " tensors would be longer than the format allows; write several files");
  }
  std::string bytes;
  for (std::size_t i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(text.size() >> (8 * i) & 0xffU));
  return bytes + text;
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(const std::string& path, const std::vector<TensorToWrite>& tensors,
                                     const TensorMetadata& metadata)
    : file_(path), tensors_(place(tensors, path)), tensor_checksums_(tensors.size()) {
  const std::string first = head(tensors_, metadata, path);
  total_ = static_cast<std::int64_t>(first.size());
  for (StoredTensor& tensor : tensors_) {
    tensor.offset += static_cast<std::int64_t>(first.size());
    total_ += tensor.bytes;
  }
  file_.write(first.data(), static_cast<std::int64_t>(first.size()));
  file_checksum_.add(first.data(), first.size());
  finish_tensors();
}

void SafetensorsWriter::finish_tensors() {
  while (current_ < tensors_.size() && written_of_current_ == tensors_[current_].bytes) {
    tensor_checksums_[current_] = tensor_checksum_.value();
    tensor_checksum_.restart();
    ++current_;
    written_of_current_ = 0;
  }
}

void SafetensorsWriter::append(const void* bytes, std::int64_t count) {
  if (count > total_ - file_.bytes()) {
    throw RunError("cannot write " + shown_path(file_.path()) + ": more data than its tensors have");
  }
  const auto* from = static_cast<const char*>(bytes);
  file_.write(from, count);
  file_checksum_.add(from, static_cast<std::size_t>(count));
  while (count > 0) {
    const std::int64_t part = std::min(count, tensors_[current_].bytes - written_of_current_);
    tensor_checksum_.add(from, static_cast<std::size_t>(part));
    written_of_current_ += part;
    from += part;
    count -= part;
    finish_tensors();
  }
}

void SafetensorsWriter::finish() {
  if (file_.bytes() != total_) {
    throw RunError("cannot write " + shown_path(file_.path()) + ": tensor \"" + shown(tensors_[current_].name, 120) +
                   "\" has not got all of its data");
  }
  file_.close();
}

}  // namespace zt
