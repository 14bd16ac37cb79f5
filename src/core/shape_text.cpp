#include "core/shape_text.h"

namespace zt {

namespace {

std::string joined(const std::vector<std::int64_t>& shape, const char* separator) {
  std::string text;
  for (const std::int64_t extent : shape) text += (text.empty() ? "" : separator) + std::to_string(extent);
  return text;
}

}  // namespace

std::string shape_text(const std::vector<std::int64_t>& shape) { return joined(shape, " x "); }

std::string shape_as_list(const std::vector<std::int64_t>& shape) { return "[" + joined(shape, ", ") + "]"; }

}  // namespace zt
