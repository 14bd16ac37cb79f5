#include "data/input_file.h"

#include <utility>

#include "core/errors.h"
#include "data/gzip.h"
#include "data/message_text.h"

namespace zt {

InputFile::InputFile(const std::string& path, const std::string& key, const std::string& what)
    : mapped_(std::make_unique<MappedFile>(path, key, what)) {
  if (!is_gzip(mapped_->bytes())) return;
  unpacked_ = gunzip(mapped_->bytes(), origin_of(key, path));
  if (unpacked_.empty())
    throw UserError(origin_of(key, path) + " is a gzip of nothing; name " + what + " with something in it");
  mapped_.reset();
}

std::string InputFile::take() {
  if (mapped_) {
    unpacked_ = mapped_->bytes();
    mapped_.reset();
  }
  return std::exchange(unpacked_, {});
}

}  // namespace zt
