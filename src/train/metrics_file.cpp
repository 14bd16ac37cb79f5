#include "train/metrics_file.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "core/errors.h"
#include "core/files.h"
#include "core/json.h"

namespace zt {

namespace {

namespace fs = std::filesystem;

nlohmann::ordered_json record_in(const std::string& line) {
  return nlohmann::ordered_json::parse(line, nullptr, false);
}

}  // namespace

std::string read_metrics(const std::string& path, const std::function<void(nlohmann::ordered_json&&)>& visit) {
  std::ifstream file(path, std::ios::binary);
  std::int64_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    const bool is_ended = !file.eof();
    nlohmann::ordered_json record = record_in(line);
    if (record.is_object()) {
      visit(std::move(record));
      continue;
    }
    const std::string place = path + ":" + std::to_string(number);
    if (!is_ended) return place + ", the last line, was never finished: it is left out";
    throw RunError(place + " is not a JSON object: the file is damaged; remove that line to read the others");
  }
  return "";
}

void mend_last_line(const std::string& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return;  // missing, or what cannot be written will tell
  const auto fail = [&](const std::string& why) {
    throw RunError("cannot mend the last line of " + path + ": " + why);
  };
  const auto size = static_cast<std::int64_t>(fs::file_size(path, error));
  if (error) fail(error.message());
  // From the end back to where the last line begins, in blocks.
  constexpr std::int64_t block = 4096;
  constexpr std::int64_t longest_record = std::int64_t{1} << 20;  // bytes, far more than any has
  std::ifstream file(path, std::ios::binary);
  std::string part;
  const auto read = [&](std::int64_t from, std::int64_t count) {
    part.resize(static_cast<std::size_t>(count));
    if (!file.seekg(from) || !file.read(part.data(), count)) fail("it cannot be read");
  };
  std::int64_t first = size;
  for (bool found = false; first > 0 && !found && size - first <= longest_record;) {
    const std::int64_t count = std::min(block, first);
    read(first - count, count);
    const std::size_t end = part.rfind('\n');
    found = end != std::string::npos;
    first -= found ? count - static_cast<std::int64_t>(end) - 1 : count;
  }
  if (first == size) return;
  // What is longer was never a record's beginning: it is not this program's to remove.
  if (size - first > longest_record) return LineFile(path).append("");
  read(first, size - first);
  if (record_in(part).is_object()) return LineFile(path).append("");
  fs::resize_file(path, static_cast<std::uintmax_t>(first), error);
  if (error) fail(error.message());
}

}  // namespace zt
