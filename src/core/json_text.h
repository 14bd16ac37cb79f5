// JSON as the program's records have it: every floating-point number with 9 significant digits.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace zt {

// indent < 0: one line.
std::string json_text(const nlohmann::ordered_json& value, int indent = -1);

// An object in one line, written as json_text() writes it, straight behind what a string holds: for records that are
// written often. Names and texts must need no escaping.
class JsonLine {
 public:
  explicit JsonLine(std::string& out);
  void text(std::string_view name, std::string_view value);
  void boolean(std::string_view name, bool value);
  void integer(std::string_view name, std::int64_t value);
  void number(std::string_view name, double value);  // null if it is not finite
  void end();                                        // with a newline

 private:
  JsonLine& key(std::string_view name);
  std::string& out_;
  bool first_ = true;
};

}  // namespace zt
