#include "data/json_fault.h"

#include <cctype>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "data/message_text.h"
#include "data/utf8.h"

namespace zt {
namespace {

// What may come next.
enum class Next : unsigned char { value, value_or_end, key, key_or_end, colon, comma_or_end, nothing };

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Scanner {
 public:
  explicit Scanner(std::string_view line) : line_(line) {}

  JsonFault scan() {
    while (fault_.what.empty()) {
      while (at_ < line_.size() && (line_[at_] == ' ' || line_[at_] == '\t' || line_[at_] == '\r')) ++at_;
      if (at_ == line_.size()) {
        if (next_ != Next::nothing) fail_at_end();
        break;
      }
      step(line_[at_]);
    }
    return std::move(fault_);
  }

 private:
  void fail(std::size_t offset, std::string what) {
    if (fault_.what.empty()) fault_ = {offset, std::move(what)};
  }

  void fail_at_end() {
    const std::size_t place = line_.find_last_not_of(" \t\r");
    const char last = place == std::string_view::npos ? '{' : line_[place];
    fail(line_.size(), open_.empty()
                           ? "a value is missing"
                           : std::string("the line ends within ") + (open_.back() == '{' ? "an object" : "an array") +
                                 ": one object stands on one line, from { to }");
    fault_.goes_on = std::string_view("{[,:").find(last) != std::string_view::npos;
  }

  void step(char c) {
    switch (next_) {
      case Next::value_or_end:
        if (c == ']') return close();
        [[fallthrough]];
      case Next::value: return value(c);
      case Next::key_or_end:
        if (c == '}') return close();
        [[fallthrough]];
      case Next::key: return key(c);
      case Next::colon:
        if (c != ':') return fail(at_, "a colon is missing between the key and its value");
        ++at_;
        next_ = Next::value;
        return;
      case Next::comma_or_end: return comma_or_end(c);
      case Next::nothing: return after_value(c);
    }
  }

  void close() {
    ++at_;
    open_.pop_back();
    closed_value();
  }
  void closed_value() { next_ = open_.empty() ? Next::nothing : Next::comma_or_end; }

  void value(char c) {
    if (c == '"') {
      string();
      return closed_value();
    }
    if (c == '{' || c == '[') {
      ++at_;
      open_.push_back(c);
      next_ = c == '{' ? Next::key_or_end : Next::value_or_end;
      return;
    }
    if (is_digit(c) || c == '-' || c == '+' || c == '.') return number();
    if (is_letter(c)) return word();
    if (c == ']' && next_ == Next::value && !open_.empty() && open_.back() == '[')
      return fail(last_comma_, "remove the comma before the ]");
    if (c == ',' || c == '}' || c == ']') return fail(at_, std::string("a value is missing before this ") + c);
    strange("a value belongs here");
  }

  void key(char c) {
    if (c == '"') {
      string();
      next_ = Next::colon;
      return;
    }
    if (c == '}') return fail(last_comma_, "remove the comma before the }");
    if (c == ',') return fail(at_, "a comma too many: remove it");
    strange("a key in double quotes belongs here");
  }

  void comma_or_end(char c) {
    const char end = open_.back() == '{' ? '}' : ']';
    if (c == end) return close();
    if (c == ',') {
      last_comma_ = at_++;
      next_ = end == '}' ? Next::key : Next::value;
      return;
    }
    if (c == '}' || c == ']') return fail(at_, std::string("a ") + end + " is missing before this " + c);
    if (after_string_ == at_ && c != '"') {
      return fail(at_, R"(the text ends at the quote before this; a quote within a text is written \")");
    }
    if (c == ':') return fail(at_, "a colon stands between a key and its value alone: a comma belongs here");
    strange("a comma is missing before this");
  }

  void after_value(char c) {
    if (c == ',')
      return fail(at_, "remove the comma behind }: lines stand one below the other, with nothing between them");
    if (c == '{') return fail(at_, "a second object begins here: write each on a line of its own");
    if (c == '}' || c == ']') return fail(at_, std::string("a ") + c + " too many: remove it");
    strange("something follows the value: remove it");
  }

  // Something that belongs nowhere, or not here.
  void strange(const std::string& expected) {
    const char c = line_[at_];
    std::size_t offset = at_;
    const char32_t code_point = next_code_point(line_, offset);
    if (code_point == no_code_point) return not_utf8();
    if (c == '\'' || code_point == 0x2018 || code_point == 0x2019 || (code_point >= 0x201c && code_point <= 0x201e)) {
      return fail(at_, "keys and texts stand in double quotes: \"...\"");
    }
    if (c == '#' || c == '/') return fail(at_, "JSON has no comments: remove it");
    if (is_letter(c) && expected.find("comma") == std::string::npos) {
      return fail(at_, expected + ": keys and texts stand in double quotes: \"...\"");
    }
    if (code_point < 0x20 || code_point == 0x7f)
      return fail(at_, expected + ", not the character " + shown(line_.substr(at_, 1)));
    fail(at_, expected);
  }

  void not_utf8() { fail(at_, "not UTF-8 (the byte " + shown(line_.substr(at_, 1)) + "): convert the file to UTF-8"); }

  void word() {
    const std::size_t start = at_;
    while (at_ < line_.size() && (is_letter(line_[at_]) || is_digit(line_[at_]) || line_[at_] == '_')) ++at_;
    const std::string_view text = line_.substr(start, at_ - start);
    if (text == "true" || text == "false" || text == "null") return closed_value();
    if (text == "True" || text == "False" || text == "None") {
      return fail(start, "JSON writes true, false and null, in small letters");
    }
    if (text == "NaN" || text == "Infinity" || text == "nan" || text == "inf") {
      return fail(start, "JSON has no " + std::string(text) + ": write null or a number");
    }
    fail(start, "keys and texts stand in double quotes: \"" + shown(text, 20) + "\"");
  }

  bool digits() {
    const std::size_t start = at_;
    while (at_ < line_.size() && is_digit(line_[at_])) ++at_;
    return at_ > start;
  }

  void number() {
    const std::size_t start = at_;
    bool right = true;
    if (line_[at_] == '-') ++at_;
    const std::size_t first = at_;
    right = digits() && (line_[first] != '0' || at_ == first + 1);
    if (right && at_ < line_.size() && line_[at_] == '.') {
      ++at_;
      right = digits();
    }
    if (right && at_ < line_.size() && (line_[at_] == 'e' || line_[at_] == 'E')) {
      ++at_;
      if (at_ < line_.size() && (line_[at_] == '+' || line_[at_] == '-')) ++at_;
      right = digits();
    }
    // 12a, 0x10
    if (at_ < line_.size() && (is_letter(line_[at_]) || line_[at_] == '.')) right = false;
    if (!right) {
      return fail(start, "not a number as JSON has them: no + and no 0 before it, digits on both sides of the point");
    }
    const std::string text(line_.substr(start, at_ - start));
    if (!std::isfinite(std::strtod(text.c_str(), nullptr))) {
      return fail(start, "the number " + shown(text, 20) + " is more than can be read (1.8e308)");
    }
    closed_value();
  }

  void string() {
    const std::size_t opening = at_++;
    while (at_ < line_.size()) {
      const char c = line_[at_];
      if (c == '"') {
        after_string_ = ++at_;
        return;
      }
      if (c == '\\') {
        if (!escape()) return;
        continue;
      }
      if (static_cast<unsigned char>(c) < 0x20) {
        const std::string written = c == '\t' ? "a tab" : "the character " + shown(line_.substr(at_, 1));
        return fail(at_, written + " within a text is written as an escape: " +
                             (c == '\t' ? R"(\t)" : R"(\u and four digits)"));
      }
      if (next_code_point(line_, at_) == no_code_point) return not_utf8();
    }
    fail(opening,
         "the text that begins here is never closed: its quote is missing, or the line was broken in two (a "
         R"(line break within a text is written \n))");
  }

  // The value of \uXXXX at at_; moves past it. None: told.
  bool escaped_unit(unsigned& unit) {
    unit = 0;
    for (std::size_t i = 2; i < 6; ++i) {
      const char c = at_ + i < line_.size() ? line_[at_ + i] : '"';
      if (std::isxdigit(static_cast<unsigned char>(c)) == 0) {
        fail(at_, R"(\u is followed by four digits of 0-9 and a-f: \u00e9)");
        return false;
      }
      unit = unit * 16 +
             static_cast<unsigned>(is_digit(c) ? c - '0' : std::tolower(static_cast<unsigned char>(c)) - 'a' + 10);
    }
    at_ += 6;
    return true;
  }

  bool escape() {
    const std::size_t start = at_;
    if (at_ + 1 == line_.size()) {
      fail(at_, "the line ends within an escape: it was broken in two");
      return false;
    }
    const char c = line_[at_ + 1];
    if (c == 'u') {
      unsigned unit = 0;
      if (!escaped_unit(unit)) return false;
      if (unit < 0xd800 || unit > 0xdfff) return true;
      unsigned low = 0;
      const bool paired = unit < 0xdc00 && line_.substr(at_, 2) == R"(\u)";
      if (paired && !escaped_unit(low)) return false;
      if (!paired || low < 0xdc00 || low > 0xdfff) {
        fail(start, "one half of a surrogate pair without the other: write both, or the character itself");
        return false;
      }
      return true;
    }
    if (std::string_view("\"\\/bfnrt").find(c) == std::string_view::npos) {
      std::size_t end = at_ + 1;
      if (next_code_point(line_, end) == no_code_point) end = at_ + 2;
      fail(at_, "no escape: " + shown(line_.substr(at_, end - at_)) + R"( (a backslash itself is written \\))");
      return false;
    }
    at_ += 2;
    return true;
  }

  std::string_view line_;
  std::size_t at_ = 0;
  std::size_t last_comma_ = 0;
  std::size_t after_string_ = 0;  // where the text read last ended; 0: none was
  Next next_ = Next::value;
  std::vector<char> open_;  // { and [ that are not closed
  JsonFault fault_;
};

}  // namespace

JsonFault find_json_fault(std::string_view line) { return Scanner(line).scan(); }

}  // namespace zt
