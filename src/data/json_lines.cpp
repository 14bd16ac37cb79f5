#include "data/json_lines.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/errors.h"
#include "core/spelling.h"

namespace zt {
namespace {

using Json = nlohmann::json;

// One line, and where it stands.
struct Line {
  std::string_view text;
  std::int64_t number = 0;
  const std::string& origin;

  // `column` in bytes, from 1; 0: the line as a whole.
  [[noreturn]] void fail(std::size_t column, const std::string& what) const {
    std::string place = origin + ":" + std::to_string(number);
    if (column > 0) place += ":" + std::to_string(column);
    throw UserError(place + ": " + what + excerpt(column));
  }

 private:
  // The part of the line around a column, with a caret below it.
  std::string excerpt(std::size_t column) const {
    if (column == 0) return {};
    constexpr std::size_t before = 50;
    constexpr std::size_t longest = 90;
    const auto continues = [&](std::size_t i) { return (static_cast<unsigned char>(text[i]) & 0xc0U) == 0x80U; };
    const std::size_t at = std::min(column - 1, text.size());
    std::size_t first = at > before ? at - before : 0;
    while (first < at && continues(first)) ++first;
    std::size_t last = std::min(text.size(), first + longest);
    while (last < text.size() && continues(last)) ++last;
    std::string shown, pad;
    for (std::size_t i = first; i < last; ++i) {
      const auto c = static_cast<unsigned char>(text[i]);
      shown += c < 0x20 ? ' ' : text[i];
      if (i < at && !continues(i)) pad += ' ';
    }
    return "\n    " + shown + "\n    " + pad + "^";
  }
};

// What the library says of a syntax error, without its own numbers and names.
std::string reason(const std::string& message) {
  if (message.find("unexpected string literal; expected '}'") != std::string::npos) {
    return "a comma is missing before this";
  }
  const std::size_t column = message.find("column ");
  const std::size_t start = column == std::string::npos ? std::string::npos : message.find(": ", column);
  return start == std::string::npos ? message : message.substr(start + 2);
}

// The column (from 1) at which what the library has read last begins; it says where that ends.
std::size_t column_of(std::string_view text, std::size_t end) {
  std::size_t at = std::clamp<std::size_t>(end, 1, std::max<std::size_t>(text.size(), 1)) - 1;
  if (at == 0 || text[at] != '"') return at + 1;
  const auto escaped = [&](std::size_t quote) {
    std::size_t backslashes = 0;
    while (backslashes < quote && text[quote - 1 - backslashes] == '\\') ++backslashes;
    return backslashes % 2 == 1;
  };
  std::size_t opening = at - 1;
  while (opening > 0 && (text[opening] != '"' || escaped(opening))) --opening;
  return opening + 1;
}

Json parse(const Line& line) {
  std::set<std::string> seen;
  std::string twice;
  const auto watch_keys = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth == 1 && event == Json::parse_event_t::key && !seen.insert(parsed.get<std::string>()).second) {
      twice = parsed.get<std::string>();
    }
    return true;
  };
  Json object;
  try {
    object = Json::parse(line.text.begin(), line.text.end(), watch_keys);
  } catch (const Json::parse_error& error) {
    line.fail(column_of(line.text, error.byte), "not JSON: " + reason(error.what()));
  } catch (const Json::exception& error) {  // a number that no double holds
    line.fail(0, std::string("not JSON that can be read: ") + error.what());
  }
  if (!object.is_object()) {
    line.fail(1, "a line is one object, {\"prompt\": \"...\", \"completion\": \"...\"}; this one is " +
                     std::string(object.type_name()));
  }
  if (!twice.empty()) line.fail(0, "the key \"" + twice + "\" stands there twice: remove one");
  return object;
}

std::string text_of(const Line& line, const Json& object, const std::string& key) {
  const auto found = object.find(key);
  if (found == object.end()) {
    std::vector<std::string> keys;
    for (const auto& item : object.items()) keys.push_back(item.key());
    const std::string near = nearest_word(key, keys);
    line.fail(0, "the key \"" + key + "\" is missing" +
                     (near.empty() ? "; a" : "; is \"" + near + "\" meant for it? A") +
                     " line is {\"prompt\": \"...\", \"completion\": \"...\"}");
  }
  if (!found->is_string()) {
    line.fail(0, "\"" + key + "\" is " + found->type_name() + ", where a text in quotes should be");
  }
  return found->get<std::string>();
}

}  // namespace

std::vector<PromptCompletion> read_prompts(std::string_view text, const std::string& origin) {
  std::vector<PromptCompletion> lines;
  std::int64_t number = 0;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // byte order mark
  while (!text.empty()) {
    ++number;
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view content = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (content.ends_with('\r')) content.remove_suffix(1);
    if (content.find_first_not_of(" \t") == std::string_view::npos) continue;
    const Line line{content, number, origin};
    const Json object = parse(line);
    PromptCompletion& entry = lines.emplace_back();
    entry.prompt = text_of(line, object, "prompt");
    entry.completion = text_of(line, object, "completion");
    entry.line = number;
    if (entry.completion.empty()) {
      line.fail(0, "\"completion\" is empty: nothing of the line would be learned; remove the line or write one");
    }
  }
  return lines;
}

}  // namespace zt
