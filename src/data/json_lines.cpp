#include "data/json_lines.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>

#include "core/errors.h"
#include "core/json.h"
#include "core/spelling.h"
#include "data/faults.h"
#include "data/json_fault.h"
#include "data/message_text.h"

namespace zt {
namespace {

using Json = nlohmann::json;

constexpr const char* example = R"({"prompt": "...", "completion": "..."})";

// One line, where it stands, and where its faults go.
struct Line {
  std::string_view text;
  std::int64_t number = 0;
  Faults& faults;

  // `column` in bytes, from 1, shown with the part of the line around it; 0: the line as a whole.
  void fail(std::size_t column, const std::string& what) const {
    std::string place = "line " + std::to_string(number);
    if (column > 0) place += ", column " + std::to_string(column);
    faults.add(place + ": " + what + excerpt(column));
  }

 private:
  std::string excerpt(std::size_t column) const {
    if (column == 0) return {};
    constexpr std::size_t before = 50;
    constexpr std::size_t after = 40;
    constexpr std::size_t all = std::numeric_limits<std::size_t>::max();
    const auto continues = [&](std::size_t i) { return (static_cast<unsigned char>(text[i]) & 0xc0U) == 0x80U; };
    const std::size_t at = std::min(column - 1, text.size());
    std::size_t first = at > before ? at - before : 0;
    while (first < at && continues(first)) ++first;
    std::size_t last = std::min(text.size(), at + after);
    while (last < text.size() && last < at + after + 4 && continues(last)) ++last;
    const std::string left = shown(text.substr(first, at - first), all);
    const auto width =
        std::ranges::count_if(left, [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; });
    return "\n      " + left + shown(text.substr(at, last - at), all) + "\n      " +
           std::string(static_cast<std::size_t>(width), ' ') + "^";
  }
};

const char* type_in_words(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null: return "null";
    case Json::value_t::object: return "an object";
    case Json::value_t::array: return "an array";
    case Json::value_t::string: return "a text";
    case Json::value_t::boolean: return value.get<bool>() ? "true" : "false";
    default: return "a number";
  }
}

// The object of a line; none where a fault was told. `twice` is a key that stands there twice, or empty.
std::optional<Json> parse(const Line& line, bool& goes_on) {
  std::set<std::string> seen;
  std::optional<std::string> twice;
  const auto watch_keys = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth == 1 && event == Json::parse_event_t::key && !seen.insert(parsed.get<std::string>()).second) {
      twice = parsed.get<std::string>();
    }
    return true;
  };
  Json object;
  try {
    object = Json::parse(line.text.begin(), line.text.end(), watch_keys);
  } catch (const Json::exception&) {
    const JsonFault fault = find_json_fault(line.text);
    goes_on = fault.goes_on;
    line.fail(fault.offset + 1, fault.what.empty() ? "not JSON" : fault.what);
    return std::nullopt;
  }
  if (!object.is_object()) {
    line.fail(1, std::string("a line is one object, ") + example + "; this one is " + type_in_words(object));
    return std::nullopt;
  }
  if (twice) {
    line.fail(0, "the key \"" + shown(*twice) + "\" stands there twice: remove one");
    return std::nullopt;
  }
  return object;
}

// The text of a key; none where a fault was told.
std::optional<std::string> text_of(const Line& line, const Json& object, const std::string& key) {
  const auto found = object.find(key);
  if (found == object.end()) {
    std::vector<std::string> keys;
    for (const auto& item : object.items()) keys.push_back(item.key());
    const std::string near = nearest_word(key, keys);
    line.fail(0, "the key \"" + key + "\" is missing" +
                     (near.empty() ? "; a" : "; is \"" + shown(near) + "\" meant for it? A") + " line is " + example);
    return std::nullopt;
  }
  if (!found->is_string()) {
    line.fail(0, "\"" + key + "\" is " + type_in_words(*found) + ", where a text in quotes should be");
    return std::nullopt;
  }
  return found->get<std::string>();
}

// Calls f(text, number) for each line with something on it, until f is false.
template <typename F>
void for_each_line(std::string_view text, F&& f) {
  std::int64_t number = 0;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // byte order mark
  while (!text.empty()) {
    ++number;
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view content = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (content.ends_with('\r')) content.remove_suffix(1);
    if (content.find_first_not_of(" \t") == std::string_view::npos) continue;
    if (!f(content, number)) return;
  }
}

// One array around all objects, or one object over several lines.
void refuse_one_value(std::string_view text, const std::string& origin) {
  const std::size_t first = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  const std::size_t last = text.find_last_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] != '[' || text[last] != ']') return;
  const std::size_t inside = text.find_first_not_of(" \t\r\n", first + 1);
  if (text[inside] != '{') return;
  throw UserError(origin + ": a line is one object, " + example +
                  "; this file is one JSON array: write each object on its own line, without the [ and ] around them "
                  "and the commas between them");
}

}  // namespace

std::vector<PromptCompletion> read_prompts(std::string_view text, const std::string& origin) {
  refuse_one_value(text, origin);
  std::vector<PromptCompletion> entries;
  Faults faults;
  bool goes_on = false;
  for_each_line(text, [&](std::string_view content, std::int64_t number) {
    const Line line{content, number, faults};
    const std::optional<Json> object = parse(line, goes_on);
    if (!object) return !goes_on;  // the rest of a value is no line of its own
    std::optional<std::string> prompt = text_of(line, *object, "prompt");
    std::optional<std::string> completion = text_of(line, *object, "completion");
    if (completion && completion->empty()) {
      line.fail(0, "\"completion\" is empty: nothing of the line would be learned; remove the line or write one");
    }
    if (prompt && completion) entries.push_back({std::move(*prompt), std::move(*completion), number});
    return true;
  });
  if (faults.count() > 0) {
    throw UserError(origin + " has " + counted(faults.count(), "fault") + (goes_on ? " so far" : "") +
                    "; each line is one object, " + example + ":" + faults.list());
  }
  return entries;
}

bool looks_like_prompts(std::string_view text) {
  constexpr std::size_t longest = std::size_t{1} << 20;
  bool found = false;
  for_each_line(text, [&](std::string_view content, std::int64_t) {
    content.remove_prefix(content.find_first_not_of(" \t"));
    content.remove_suffix(content.size() - 1 - content.find_last_not_of(" \t"));
    if (content == "[") return true;  // an array, its first object on the next line
    if (content.ends_with(',')) content.remove_suffix(1);
    if (content.starts_with("[{") && !content.ends_with(']')) content.remove_prefix(1);
    if (content.size() > longest || (!content.starts_with('{') && !content.starts_with("[{"))) return false;
    const Json parsed = Json::parse(content.begin(), content.end(), nullptr, false);
    const Json& object = parsed.is_array() && !parsed.empty() ? parsed.front() : parsed;  // a copy would be recursive
    const auto is_text = [&](const char* key) { return object.contains(key) && object.at(key).is_string(); };
    found = object.is_object() && is_text("prompt") && is_text("completion");
    return false;
  });
  return found;
}

}  // namespace zt
