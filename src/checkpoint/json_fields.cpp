#include "checkpoint/json_fields.h"

#include <cmath>
#include <utility>

#include "checkpoint/checksum.h"
#include "core/errors.h"

namespace zt {

JsonFields::JsonFields(const Json& json, std::string file, std::string place)
    : json_(json), file_(std::move(file)), place_(std::move(place)) {
  if (!json_.is_object())
    throw RunError(file_ + ": " + (place_.empty() ? "it" : place_.substr(0, place_.size() - 1)) +
                   " is not a JSON object");
}

void JsonFields::fail(const std::string& key, const std::string& why) const {
  throw RunError(file_ + ": " + place_ + key + " " + why);
}

const JsonFields::Json& JsonFields::value(const char* key) const {
  const auto found = json_.find(key);
  if (found == json_.end()) fail(key, "is missing");
  return *found;
}

bool JsonFields::is_null(const char* key) const {
  const auto found = json_.find(key);
  return found == json_.end() || found->is_null();
}

namespace {

std::optional<std::int64_t> integer_in(const JsonFields::Json& value, std::int64_t least, std::int64_t most) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX))
    return std::nullopt;
  const auto number = value.get<std::int64_t>();
  if (number < least || number > most) return std::nullopt;
  return number;
}

std::string range(std::int64_t least, std::int64_t most) {
  return "must be an integer from " + std::to_string(least) + " to " + std::to_string(most);
}

}  // namespace

std::int64_t JsonFields::integer(const char* key, std::int64_t least, std::int64_t most) const {
  const auto number = integer_in(value(key), least, most);
  if (!number) fail(key, range(least, most));
  return *number;
}

double JsonFields::number(const char* key) const {
  const Json& found = value(key);
  if (!found.is_number() || !std::isfinite(found.get<double>())) fail(key, "must be a number");
  return found.get<double>();
}

std::optional<double> JsonFields::number_or_null(const char* key) const {
  if (is_null(key)) return std::nullopt;
  return number(key);
}

std::string JsonFields::text(const char* key) const {
  const Json& found = value(key);
  if (!found.is_string()) fail(key, "must be a string");
  return found.get<std::string>();
}

bool JsonFields::boolean(const char* key) const {
  const Json& found = value(key);
  if (!found.is_boolean()) fail(key, "must be true or false");
  return found.get<bool>();
}

std::uint64_t JsonFields::checksum(const char* key) const {
  const auto parsed = parse_checksum(text(key));
  if (!parsed) fail(key, "must be 16 hexadecimal digits");
  return *parsed;
}

const JsonFields::Json& JsonFields::array(const char* key) const {
  const Json& found = value(key);
  if (!found.is_array()) fail(key, "must be a list");
  return found;
}

std::vector<double> JsonFields::numbers(const char* key) const {
  std::vector<double> numbers;
  for (const Json& element : array(key)) {
    if (!element.is_number() || !std::isfinite(element.get<double>())) fail(key, "must be a list of numbers");
    numbers.push_back(element.get<double>());
  }
  return numbers;
}

std::vector<std::int64_t> JsonFields::integers(const char* key, std::int64_t least, std::int64_t most) const {
  std::vector<std::int64_t> integers;
  for (const Json& element : array(key)) {
    const auto number = integer_in(element, least, most);
    if (!number) fail(key, "is a list, each of which " + range(least, most));
    integers.push_back(*number);
  }
  return integers;
}

std::vector<std::string> JsonFields::texts(const char* key) const {
  std::vector<std::string> texts;
  for (const Json& element : array(key)) {
    if (!element.is_string()) fail(key, "must be a list of strings");
    texts.push_back(element.get<std::string>());
  }
  return texts;
}

JsonFields JsonFields::object(const char* key) const { return {value(key), file_, place_ + key + "."}; }

std::vector<JsonFields> JsonFields::objects(const char* key) const {
  const Json& list = array(key);
  std::vector<JsonFields> objects;
  objects.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i)
    objects.emplace_back(list[i], file_, place_ + key + "[" + std::to_string(i) + "].");
  return objects;
}

}  // namespace zt
