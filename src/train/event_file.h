// TensorBoard's event files: records, each a length and a message with their checksums (TFRecord), whose messages are
// protobuf (Event, Summary and SessionLog of tensorboard/compat/proto). Encoded by hand: a curve needs seven fields.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace zt {

// CRC-32C (Castagnoli), by a table: what is linked has others (zlib the older CRC-32, xxHash XXH3), and a record has
// some fifty bytes, of which a step writes three.
std::uint32_t crc32c(std::string_view bytes);

// Messages. `wall_time`: seconds since 1970.
std::string version_event(double wall_time);  // the first of every file
// Events of earlier files with this step or a later one are void.
std::string restart_event(double wall_time, std::int64_t step);
std::string scalar_event(double wall_time, std::int64_t step, std::string_view tag, double value);  // kept as a float

// Appends a message as a record.
void append_record(std::string& out, std::string_view message);

}  // namespace zt
