// nlohmann/json with its two classes (sorted keys, and keys in the order of the file) and their parsers of texts
// compiled once, in json.cpp and json_ordered.cpp: to compile them again in every file that reads JSON took most of
// that file's time. Included in place of the library's header.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace zt::json_parts {

using FromText = nlohmann::detail::iterator_input_adapter<std::string::const_iterator>;
using FromPointers = nlohmann::detail::iterator_input_adapter<const char*>;
using FromStream = nlohmann::detail::input_stream_adapter;

}  // namespace zt::json_parts

// The declarations here, the definitions in two files: PREFIX is `extern` or nothing.
#define ZT_JSON_CLASSES(PREFIX, JSON)                                                           \
  PREFIX template class nlohmann::JSON;                                                         \
  PREFIX template class nlohmann::detail::parser<nlohmann::JSON, zt::json_parts::FromText>;     \
  PREFIX template class nlohmann::detail::parser<nlohmann::JSON, zt::json_parts::FromPointers>; \
  PREFIX template class nlohmann::detail::parser<nlohmann::JSON, zt::json_parts::FromStream>;   \
  PREFIX template class nlohmann::detail::lexer<nlohmann::JSON, zt::json_parts::FromText>;      \
  PREFIX template class nlohmann::detail::lexer<nlohmann::JSON, zt::json_parts::FromPointers>;  \
  PREFIX template class nlohmann::detail::lexer<nlohmann::JSON, zt::json_parts::FromStream>;    \
  PREFIX template class nlohmann::detail::json_sax_dom_parser<nlohmann::JSON>;                  \
  PREFIX template class nlohmann::detail::json_sax_dom_callback_parser<nlohmann::JSON>;

ZT_JSON_CLASSES(extern, basic_json<>)
ZT_JSON_CLASSES(extern, basic_json<nlohmann::ordered_map>)
