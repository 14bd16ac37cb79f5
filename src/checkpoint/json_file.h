// Small JSON files of other programs, and keys of them.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace zt {

// The whole file, which must hold one object. UserError with the path and what is wrong; a file of more than
// `most_bytes` is not read.
nlohmann::json read_json_object(const std::string& path, std::int64_t most_bytes);

}  // namespace zt
