#include "config/json_scanner.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "config/json_reader.h"
#include "core/json.h"

namespace zt {
namespace {

constexpr int deepest = 64;  // of nested sections; nothing known needs more than five
// A few hundred are known. Each new key of a section is compared with those before it, and with all that are known.
constexpr std::size_t most_keys = 10000;

std::size_t line_of(const std::string& text, std::size_t position) {
  return 1 +
         static_cast<std::size_t>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(position), '\n'));
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$'; }

class Scanner {
 public:
  Scanner(const std::string& blanked, const std::string& original, const std::string& name)
      : text_(blanked), original_(original), name_(name) {}

  ScanResult scan() {
    skip_blanks();
    if (at_ == text_.size()) {
      const bool has_comments = original_.find_first_not_of(" \t\r\n") != std::string::npos;
      fail(0, std::string(has_comments ? "the file holds comments only" : "the file is empty") +
                  ": a config is one object, { \"key\": value, ... }");
    }
    if (text_[at_] == '"') check_fragment();
    if (text_[at_] != '{') fail(at_, "a config is one object: it starts with { and ends with }");
    object("", 0);
    skip_blanks();
    if (at_ < text_.size()) {
      fail(at_, text_[at_] == '}' ? "one } too many" : "the config's object has ended: nothing may follow its last }");
    }
    return std::move(result_);
  }

  ScanResult scan_value(const std::string& path) {
    whole_ = "the value";
    value(path, 0);
    skip_blanks();
    if (at_ < text_.size()) fail(at_, "the value has ended: nothing may follow it");
    return std::move(result_);
  }

 private:
  [[noreturn]] void fail(std::size_t position, const std::string& what) const {
    throw ConfigError(describe_position(original_, position, name_, what));
  }

  void skip_blanks() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) {
      ++at_;
    }
  }

  // As line_of, for places that come one after the other.
  std::size_t next_line_of(std::size_t position) {
    const auto at = [&](std::size_t offset) { return text_.begin() + static_cast<std::ptrdiff_t>(offset); };
    counted_line_ += static_cast<std::size_t>(std::count(at(counted_to_), at(position), '\n'));
    counted_to_ = position;
    return counted_line_;
  }

  std::string opened_at(char bracket, std::size_t start, const std::string& path) const {
    std::string what =
        whole_ + " ends before the " + std::string(1, bracket) + " of line " + std::to_string(line_of(text_, start));
    if (!path.empty()) what += " (" + path + ")";
    return what + " is closed with " + (bracket == '{' ? "}" : "]");
  }

  // A string at the very start, followed by a colon: somebody kept only the inner part of a file.
  void check_fragment() {
    const std::size_t start = at_;
    string();
    skip_blanks();
    if (at_ < text_.size() && text_[at_] == ':') {
      fail(start, "a fragment without its outer braces: put { before this and } at the end of the file");
    }
    at_ = start;
  }

  void value(const std::string& path, int depth) {
    skip_blanks();
    if (at_ == text_.size()) fail(at_, whole_ + " ends where the value of " + path + " should be");
    const char c = text_[at_];
    if (c == '{') return object(path, depth + 1);
    if (c == '[') return array(path, depth + 1);
    if (c == '"') {
      string();
      return;
    }
    refuse_typographic_quote();
    if (c == '\'') fail(at_, "strings are written in double quotes");
    if (c == ',' || c == '}' || c == ']') fail(at_, "the value of " + path + " is missing");
    const std::size_t start = at_;
    while (at_ < text_.size() &&
           (is_word(text_[at_]) || std::string_view("+-./\\:~").find(text_[at_]) != std::string_view::npos)) {
      ++at_;
    }
    const std::string_view word = std::string_view(text_).substr(start, at_ - start);
    check_word(start, word);
    result_.written.emplace(path, word);
  }

  // Word processors put them in place of straight ones.
  void refuse_typographic_quote() const {
    for (const char* quote : {"\xe2\x80\x9c", "\xe2\x80\x9d", "\xe2\x80\x9e", "\xe2\x80\x98", "\xe2\x80\x99",
                              "\xe2\x80\x9a", "\xc2\xab", "\xc2\xbb"}) {
      if (std::string_view(text_).substr(at_).starts_with(quote)) {
        fail(at_, "this is a typographic quote: write straight ones, \"");
      }
    }
  }

  void check_word(std::size_t start, std::string_view word) {
    if (word == "true" || word == "false" || word == "null") return;
    if (word.empty()) fail(start, "a value cannot start with this sign");
    if (is_number(word)) {
      if (!std::isfinite(std::strtod(std::string(word).c_str(), nullptr))) fail(start, "this number is too large");
      return;
    }
    const std::string_view unsigned_word = word.substr(word[0] == '-' || word[0] == '+' ? 1 : 0);
    for (const char* name : {"NaN", "nan", "Infinity", "infinity", "Inf", "inf"}) {
      if (unsigned_word == name) fail(start, "NaN and Infinity are not allowed: give a number");
    }
    if (word == "True" || word == "TRUE") fail(start, "write true");
    if (word == "False" || word == "FALSE") fail(start, "write false");
    if (word == "None" || word == "nil" || word == "NULL" || word == "undefined") fail(start, "write null");
    if (std::isdigit(static_cast<unsigned char>(word[0])) != 0 || word[0] == '-' || word[0] == '+' || word[0] == '.') {
      fail(start, "not a number as JSON writes it (digits before and after a point, no leading + or 0: 0.5, 5e8)");
    }
    const bool placeholder = word.size() > 3 && word.find('_') != std::string_view::npos &&
                             std::none_of(word.begin(), word.end(), [](unsigned char c) { return std::islower(c); });
    fail(start, placeholder ? "this looks like a placeholder that a script was to fill in: write the value"
                            : "text must stand in double quotes");
  }

  bool is_digit(std::size_t at) const { return std::isdigit(static_cast<unsigned char>(text_[at])) != 0; }

  // At the digits after "1,": "1.5".
  std::string number_with_point() const {
    std::size_t first = at_ - 1;
    while (first > 0 && is_digit(first - 1)) --first;
    std::size_t last = at_;
    while (last < text_.size() && is_digit(last)) ++last;
    return text_.substr(first, at_ - 1 - first) + "." + text_.substr(at_, last - at_);
  }

  static bool is_number(std::string_view word) {
    std::size_t i = word.starts_with('-') ? 1 : 0;
    const auto digits = [&] {
      const std::size_t first = i;
      while (i < word.size() && std::isdigit(static_cast<unsigned char>(word[i])) != 0) ++i;
      return i - first;
    };
    const bool zero = i < word.size() && word[i] == '0';
    const std::size_t whole = digits();
    if (whole == 0 || (zero && whole > 1)) return false;
    if (i < word.size() && word[i] == '.') {
      ++i;
      if (digits() == 0) return false;
    }
    if (i < word.size() && (word[i] == 'e' || word[i] == 'E')) {
      ++i;
      if (i < word.size() && (word[i] == '+' || word[i] == '-')) ++i;
      if (digits() == 0) return false;
    }
    return i == word.size();
  }

  std::string string() {
    const std::size_t start = at_++;
    while (true) {
      if (at_ == text_.size() || text_[at_] == '\n') fail(start, "this string is not closed on its line");
      const char c = text_[at_];
      if (static_cast<unsigned char>(c) < 0x20) {
        fail(at_, c == '\t' ? "a tab inside a string is written \\t" : "a control character inside a string");
      }
      if (c == '\\') {
        const char next = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
        if (next == '\0' || std::string_view("\"\\/bfnrtu").find(next) == std::string_view::npos) {
          fail(at_, "a backslash inside a string is written \\\\");
        }
        at_ += 2;
        continue;
      }
      ++at_;
      if (c == '"') break;
    }
    const auto parsed = Json::parse(text_.substr(start, at_ - start), nullptr, false);
    if (!parsed.is_string()) fail(start, "this string is not valid UTF-8, or holds a broken \\u sign");
    return parsed.get<std::string>();
  }

  void object(const std::string& path, int depth) {
    const std::size_t start = at_++;
    if (depth > deepest) fail(start, "sections are nested more than " + std::to_string(deepest) + " deep");
    std::map<std::string, std::size_t> seen;
    skip_blanks();
    if (at_ < text_.size() && text_[at_] == '}') {
      ++at_;
      return;
    }
    while (true) {
      skip_blanks();
      if (at_ == text_.size()) fail(at_, opened_at('{', start, path));
      if (text_[at_] == '\'') fail(at_, "keys are written in double quotes");
      if (text_[at_] == ',') fail(at_, "one comma too many");
      refuse_typographic_quote();
      if (is_digit(at_) && text_[at_ - 1] == ',' && is_digit(at_ - 2)) {
        fail(at_ - 1, "decimals follow a point, not a comma: " + number_with_point());
      }
      if (text_[at_] != '"') {
        fail(at_,
             is_word(text_[at_]) ? "keys must stand in double quotes" : "a key in double quotes should stand here");
      }
      const std::size_t key_start = at_;
      const std::string key = string();
      const std::string key_path = join_path(path, key);
      if (++keys_ > most_keys) fail(key_start, "more than " + std::to_string(most_keys) + " keys: that is no config");
      const std::size_t line = next_line_of(key_start);
      const auto [first, is_new] = seen.emplace(key, line);
      if (!is_new) {
        const bool in_file = whole_ == "the file";
        result_.duplicates.push_back(
            {key_path, in_file ? name_ + ":" + std::to_string(line) : "--set",
             (in_file ? "given twice, first on line " + std::to_string(first->second) : std::string("given twice")) +
                 ": remove one"});
      }
      result_.lines.emplace(key_path, line);
      skip_blanks();
      if (at_ == text_.size() || text_[at_] != ':') fail(at_, "a : should follow the key \"" + key + "\"");
      ++at_;
      value(key_path, depth);
      skip_blanks();
      if (at_ == text_.size()) fail(at_, opened_at('{', start, path));
      const char c = text_[at_];
      if (c == '"' || c == '{') fail(at_, "a comma is missing before this");
      if (c != ',' && c != '}') {
        fail(at_, "after the value of " + key_path + " a comma or } should follow");
      }
      ++at_;
      if (c == '}') return;
    }
  }

  void array(const std::string& path, int depth) {
    const std::size_t start = at_++;
    if (depth > deepest) fail(start, "lists are nested more than " + std::to_string(deepest) + " deep");
    skip_blanks();
    if (at_ < text_.size() && text_[at_] == ']') {
      ++at_;
      return;
    }
    while (true) {
      skip_blanks();
      if (at_ == text_.size()) fail(at_, opened_at('[', start, path));
      if (text_[at_] == ',') fail(at_, "one comma too many");
      value(path + "[]", depth);
      skip_blanks();
      if (at_ == text_.size()) fail(at_, opened_at('[', start, path));
      const char c = text_[at_];
      if (c != ',' && c != ']') fail(at_, "inside the list " + path + ", a comma or ] should stand here");
      ++at_;
      if (c == ']') return;
    }
  }

  const std::string& text_;
  const std::string& original_;
  const std::string& name_;
  std::string whole_ = "the file";
  std::size_t at_ = 0;
  std::size_t keys_ = 0;
  std::size_t counted_to_ = 0, counted_line_ = 1;  // the line of a place that was asked for before
  ScanResult result_;
};

}  // namespace

ScanResult scan_json(const std::string& blanked, const std::string& original, const std::string& name) {
  return Scanner(blanked, original, name).scan();
}

ScanResult scan_json_value(const std::string& blanked, const std::string& original, const std::string& path) {
  const std::string name = "--set " + path;
  return Scanner(blanked, original, name).scan_value(path);
}

std::string describe_position(const std::string& text, std::size_t position, const std::string& name,
                              const std::string& what) {
  // At the end of the file: the last line with something on it.
  if (position >= text.size()) {
    position = text.find_last_not_of(" \t\r\n");
    position = position == std::string::npos ? 0 : position + 1;
  }
  const std::size_t before = position == 0 ? std::string::npos : text.rfind('\n', position - 1);
  const std::size_t line_start = before == std::string::npos ? 0 : before + 1;
  std::size_t line_end = std::min(text.find('\n', position), text.size());
  while (line_end > position && text[line_end - 1] == '\r') --line_end;
  const std::size_t column = position - line_start;
  // Long lines are shown around the place only.
  const std::size_t first = column > 60 ? position - 60 : line_start;
  const std::string shown = text.substr(first, std::min<std::size_t>(line_end - first, 100));
  std::string pad;
  for (std::size_t i = first; i < position; ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if ((c & 0xc0U) != 0x80U) pad += c == '\t' ? '\t' : ' ';  // one column for each sign, not for each byte of UTF-8
  }
  return name + ":" + std::to_string(line_of(text, position)) + ":" + std::to_string(column + 1) + ": " + what +
         "\n    " + shown + "\n    " + pad + "^";
}

}  // namespace zt
