#include "checkpoint/native.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "checkpoint/checksum.h"
#include "checkpoint/directory.h"
#include "checkpoint/file_access.h"
#include "core/errors.h"
#include "data/message_text.h"

namespace zt {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t most_open = 256;

std::string whole_file(const std::string& path) {
  const InputDescriptor file(path);
  std::string text(static_cast<std::size_t>(file.bytes()), '\0');
  file.read(0, file.bytes(), text.data());
  return text;
}

}  // namespace

std::string piece_name(const std::string& tensor, std::int64_t offset) { return tensor + "#" + std::to_string(offset); }

NativeCheckpoint::NativeCheckpoint(const std::string& directory) : directory_(directory) {
  const std::string path = directory + "/" + manifest_name;
  manifest_ = parse_manifest(whole_file(path), path);
  const auto check_size = [&](const std::string& name, std::int64_t bytes) {
    const fs::path file = fs::path(directory_) / name;
    std::error_code error;
    const auto found = fs::file_size(file, error);
    if (error) throw RunError(shown_path(file.string()) + " is missing or cannot be read: " + error.message());
    if (static_cast<std::int64_t>(found) != bytes) {
      throw RunError(shown_path(file.string()) + " has " + std::to_string(found) + " bytes, and the manifest says " +
                     std::to_string(bytes) + ": it is damaged");
    }
  };
  for (const std::string& kind : manifest_.kinds()) kinds_[kind].resize(manifest_.tensors.size());
  for (std::size_t index = 0; index < manifest_.files.size(); ++index) {
    const CheckpointFile& file = manifest_.files[index];
    check_size(file.name, file.bytes);
    for (const CheckpointPiece& piece : file.pieces) {
      const auto tensor = static_cast<std::size_t>(piece.tensor);
      kinds_[file.kind][tensor].push_back(
          {piece.offset, piece.count, index, piece_name(manifest_.tensors[tensor].name, piece.offset)});
    }
  }
  if (manifest_.tokenizer) check_size(manifest_.tokenizer->file, manifest_.tokenizer->bytes);
  for (auto& [kind, places] : kinds_) {
    for (std::vector<Place>& of_tensor : places)
      std::sort(of_tensor.begin(), of_tensor.end(), [](const Place& a, const Place& b) { return a.offset < b.offset; });
  }
  open_.resize(manifest_.files.size());
}

const SafetensorsFile& NativeCheckpoint::open(std::size_t file) const {
  if (!open_[file]) {
    if (open_count_ >= most_open) {
      for (auto& other : open_) other.reset();
      open_count_ = 0;
    }
    open_[file] = std::make_unique<SafetensorsFile>(directory_ + "/" + manifest_.files[file].name);
    ++open_count_;
  }
  return *open_[file];
}

void NativeCheckpoint::read(const std::string& kind, int tensor, std::int64_t first, std::int64_t count,
                            float* out) const {
  const std::vector<Place>& places = kinds_.at(kind).at(static_cast<std::size_t>(tensor));
  std::int64_t found = 0;
  for (const Place& place : places) {
    const std::int64_t begin = std::max(first, place.offset);
    const std::int64_t end = std::min(first + count, place.offset + place.count);
    if (begin >= end) continue;
    const SafetensorsFile& file = open(place.file);
    const StoredTensor* stored = file.find(place.name);
    if (stored == nullptr || stored->elements != place.count)
      throw RunError(shown_path(file.path()) + ": " + shown(place.name, 120) + " is not in it as the manifest says");
    file.read_floats(*stored, begin - place.offset, end - begin, out + (begin - first));
    found += end - begin;
  }
  if (found != count) {
    throw RunError(shown_path(directory_) + ": no " + shown(kind) + " of " +
                   shown(manifest_.tensors[static_cast<std::size_t>(tensor)].name, 120) + " at element " +
                   std::to_string(first));
  }
}

void NativeCheckpoint::verify(int first, int stride) const {
  const auto count = static_cast<int>(manifest_.files.size());
  for (int index = first; index < count; index += stride) verify_file(manifest_.files[static_cast<std::size_t>(index)]);
  if (first == 0) verify_tokenizer();
}

void NativeCheckpoint::verify_weights() const {
  for (const CheckpointFile& file : manifest_.files) {
    if (file.kind == weights_kind) verify_file(file);
  }
  verify_tokenizer();
  verify_weights_checksum();
}

void NativeCheckpoint::verify_weights_checksum() const {
  constexpr std::int64_t most = std::int64_t{1} << 18;  // elements at once
  std::vector<float> values;
  std::uint64_t sum = 0;
  for (std::size_t tensor = 0; tensor < manifest_.tensors.size(); ++tensor) {
    const std::int64_t elements = manifest_.tensors[tensor].count();
    for (std::int64_t first = 0; first < elements; first += most) {
      const std::int64_t count = std::min(most, elements - first);
      values.resize(static_cast<std::size_t>(count));
      read(weights_kind, static_cast<int>(tensor), first, count, values.data());
      add_to_weights_checksum(sum, tensor, first, values);
    }
  }
  if (sum != manifest_.weights_checksum) {
    throw RunError(directory_ + ": the weights have another checksum than the manifest says: " + checksum_text(sum) +
                   ", not " + checksum_text(manifest_.weights_checksum));
  }
}

void NativeCheckpoint::verify_tokenizer() const {
  if (!manifest_.tokenizer) return;
  const std::string path = directory_ + "/" + manifest_.tokenizer->file;
  if (checksum_of_file(path) != manifest_.tokenizer->checksum)
    throw RunError(shown_path(path) + ": its checksum is not that of the manifest: it is damaged");
}

void NativeCheckpoint::verify_file(const CheckpointFile& file) const {
  const std::string path = directory_ + "/" + file.name;
  if (checksum_of_file(path) == file.checksum) return;
  const std::string damaged = ": its checksum is not that of the manifest: it is damaged";
  std::string where;
  try {
    const SafetensorsFile content(path);
    for (const CheckpointPiece& piece : file.pieces) {
      const std::string name =
          piece_name(manifest_.tensors.at(static_cast<std::size_t>(piece.tensor)).name, piece.offset);
      const StoredTensor* stored = content.find(name);
      if (stored == nullptr || content.checksum(*stored) != piece.checksum) {
        where = " (in " + shown(name, 120) + ")";
        break;
      }
    }
  } catch (const RunError&) {
    where = " (in its header)";
  }
  throw RunError(shown_path(path) + damaged + where);
}

std::string NativeCheckpoint::tokenizer_definition() const {
  return manifest_.tokenizer ? whole_file(directory_ + "/" + manifest_.tokenizer->file) : "";
}

std::string find_checkpoint(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) throw UserError(path + " is not there: name a checkpoint or the directory of a run");
  if (fs::exists(fs::path(path) / manifest_name, error)) return fs::path(path).lexically_normal().string();
  for (const fs::path& checkpoints : {fs::path(path) / "checkpoints", fs::path(path)}) {
    const std::vector<std::int64_t> finished = list_checkpoints(checkpoints.string()).finished;
    if (!finished.empty()) return (checkpoints / checkpoint_name(finished.back())).lexically_normal().string();
  }
  throw UserError(path +
                  " holds no finished checkpoint: name one (a directory with a manifest.json), or the directory of "
                  "a run that has written some");
}

}  // namespace zt
