#include "checkpoint/json_file.h"

#include <limits>

#include "checkpoint/file_access.h"
#include "core/errors.h"
#include "core/json.h"
#include "core/json_bounds.h"
#include "data/message_text.h"

namespace zt {

nlohmann::json read_json_object(const std::string& path, std::int64_t most_bytes) {
  std::string text;
  try {
    const InputDescriptor file(path);
    if (file.bytes() > most_bytes) {
      throw UserError(shown_path(path) + " has " + std::to_string(file.bytes()) + " bytes; a file of its kind has " +
                      std::to_string(most_bytes) + " at most");
    }
    text.resize(static_cast<std::size_t>(file.bytes()));
    file.read(0, file.bytes(), text.data());
  } catch (const RunError& error) {
    throw UserError(error.what());
  }
  const JsonBounds bounds{.most_names = std::numeric_limits<std::size_t>::max()};  // an index names every tensor
  if (const std::string beyond = beyond_json_bounds(text, bounds); !beyond.empty())
    throw UserError(shown_path(path) + " " + beyond + ", as no file of its kind is");
  try {
    nlohmann::json value = nlohmann::json::parse(text);
    if (!value.is_object()) throw UserError(shown_path(path) + " holds no JSON object");
    return value;
  } catch (const nlohmann::json::parse_error& error) {
    throw UserError(shown_path(path) + " is no JSON from its byte " + std::to_string(error.byte) + " on");
  } catch (const nlohmann::json::exception&) {
    throw UserError(shown_path(path) + " holds a number that is out of range");
  }
}

}  // namespace zt
