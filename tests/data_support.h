// What the tests of data share: files in a folder of their own, and messages.
#pragma once

#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "catch_compat.h"
#include "core/errors.h"
#include "data/source.h"

namespace zt::testing {

// A folder that lives as long as the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "zt-data-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return (path_ / name).string();
  }
  std::string path(const std::string& name = {}) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

// What a UserError says; empty if there is none.
template <typename F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const zt::UserError& error) {
    return error.what();
  }
  return {};
}

inline bool contains(const std::string& text, const std::vector<std::string>& words) {
  UNSCOPED_INFO(text);
  return std::ranges::all_of(words, [&](const std::string& word) { return text.find(word) != std::string::npos; });
}

struct Sample {
  std::vector<std::int32_t> tokens, token_targets;
  std::vector<float> features, value_targets;
};

inline Sample sample_of(const zt::Source& source, std::int64_t index) {
  const zt::SampleShape shape = source.shape();
  Sample sample;
  sample.tokens.resize(static_cast<std::size_t>(shape.tokens));
  sample.token_targets.resize(static_cast<std::size_t>(shape.token_targets));
  sample.features.resize(static_cast<std::size_t>(shape.features));
  sample.value_targets.resize(static_cast<std::size_t>(shape.value_targets));
  source.sample(index, {sample.tokens, sample.token_targets, sample.features, sample.value_targets});
  return sample;
}

// The text as gzip packs it.
inline std::string packed(const std::string& text) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

}  // namespace zt::testing
