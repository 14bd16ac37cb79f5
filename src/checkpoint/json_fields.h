// Reads fields of JSON that others may have damaged: every failure is a RunError with the file and the field.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"

namespace zt {

class JsonFields {
 public:
  using Json = nlohmann::ordered_json;
  // `place`: what stands before a field's name in messages, "" or "files[3].". `json` must live longer.
  JsonFields(const Json& json, std::string file, std::string place);

  std::int64_t integer(const char* key, std::int64_t least, std::int64_t most) const;
  double number(const char* key) const;  // finite
  std::optional<double> number_or_null(const char* key) const;
  std::string text(const char* key) const;
  bool boolean(const char* key) const;
  std::uint64_t checksum(const char* key) const;  // 16 hexadecimal digits
  std::vector<double> numbers(const char* key) const;
  std::vector<std::int64_t> integers(const char* key, std::int64_t least, std::int64_t most) const;
  std::vector<std::string> texts(const char* key) const;
  bool is_null(const char* key) const;  // or missing
  JsonFields object(const char* key) const;
  std::vector<JsonFields> objects(const char* key) const;  // of an array
  const Json& value(const char* key) const;
  const Json& json() const { return json_; }

  [[noreturn]] void fail(const std::string& key, const std::string& why) const;

 private:
  const Json& array(const char* key) const;
  const Json& json_;
  std::string file_, place_;
};

}  // namespace zt
