#include "data/document_reader.h"

#include <algorithm>

#include "core/errors.h"
#include "core/json.h"
#include "core/spelling.h"
#include "data/file_kind.h"
#include "data/json_fault.h"
#include "data/message_text.h"

namespace zt {
namespace {

bool has_lines(const std::string& path) {
  for (const char* ending : {".jsonl", ".ndjson"}) {
    if (path.ends_with(ending) || path.ends_with(std::string(ending) + ".gz")) return true;
  }
  return false;
}

}  // namespace

DocumentReader::DocumentReader(const std::string& path, const std::string& key, std::string text_key)
    : origin_(origin_of(key, path)),
      text_key_(std::move(text_key)),
      is_json_lines_(has_lines(path)),
      file_(path, key, "a file of text or JSON lines") {
  if (const std::string packed = packed_in_words(file_.bytes()); !packed.empty())
    throw UserError(origin_ + " " + packed);
}

bool DocumentReader::next(std::size_t part_bytes, const Cut& cut, DocumentPart& part) {
  const std::string_view bytes = file_.bytes();
  if (at_ >= bytes.size()) return false;
  const std::string_view rest = bytes.substr(at_);
  std::size_t length = rest.size();
  if (is_json_lines_) {
    if (length > part_bytes) length = std::min(rest.find('\n', part_bytes), rest.size() - 1) + 1;
  } else {
    // A text that cannot be cut in one place may be cut further on.
    for (std::size_t reach = part_bytes; reach < rest.size(); reach *= 2) {
      const std::size_t place = cut(rest, reach);
      if (place == 0) continue;
      length = place;
      break;
    }
  }
  part = {rest.substr(0, length), at_ == 0, at_ + length == bytes.size(), line_};
  if (is_json_lines_) line_ += std::ranges::count(part.text, '\n');
  at_ += length;
  return true;
}

void DocumentReader::for_each_line(const DocumentPart& part, const std::function<void(std::string_view)>& f) const {
  using nlohmann::json;
  std::string_view rest = part.text;
  std::int64_t number = part.first_line - 1;
  if (number == 0 && rest.starts_with("\xef\xbb\xbf")) rest.remove_prefix(3);  // byte order mark
  while (!rest.empty()) {
    ++number;
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
    const std::string place = origin_ + ": line " + std::to_string(number);
    const json object = json::parse(line.begin(), line.end(), nullptr, false);
    if (object.is_discarded()) {
      const JsonFault fault = find_json_fault(line);
      throw UserError(place + ", column " + std::to_string(fault.offset + 1) + ": " +
                      (fault.what.empty() ? "not JSON" : fault.what));
    }
    if (!object.is_object()) {
      throw UserError(place + " is no object; each line is one, with the text under the key \"" + text_key_ + "\"");
    }
    const auto found = object.find(text_key_);
    if (found == object.end() || !found->is_string()) {
      std::vector<std::string> texts;
      for (const auto& item : object.items()) {
        if (item.value().is_string()) texts.push_back(item.key());
      }
      throw UserError(
          place + (found == object.end() ? " has no key \"" : " has no text under the key \"") + text_key_ + "\"; " +
          (texts.empty() ? "each line is an object with it"
                         : "--text-key says which it is: texts are under \"" + shown(texts.front()) + "\""));
    }
    f(found->get_ref<const std::string&>());
  }
}

}  // namespace zt
