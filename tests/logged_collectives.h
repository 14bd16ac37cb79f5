// What a run with comms_logger has said, beside its summary.
#pragma once

#include <map>

#include "program_support.h"

namespace zt::test {

struct Logged {
  std::int64_t calls = 0, sent = 0;
  bool operator==(const Logged&) const = default;
};

// By kind, from the table among what was said.
inline std::map<std::string, Logged> logged_collectives(const std::string& said) {
  std::map<std::string, Logged> sums;
  bool within = false;
  for (const std::string& line : lines_of(said)) {
    if (line.starts_with("collectives of ")) within = true;
    std::istringstream words(line);
    std::string kind;
    std::int64_t message = 0;
    Logged row;
    if (!within || !line.starts_with("  ") || !(words >> kind >> message >> row.calls >> row.sent)) continue;
    sums[kind].calls += row.calls;
    sums[kind].sent += row.sent;
  }
  return sums;
}

// Calls and bytes are those that the summary counts for training; sums of a step's agreement, which it does not count
// as that, come once a step or oftener.
inline void check_logged_collectives(const std::string& said, const fs::path& run) {
  const Json summary = json_of(run / "summary.json");
  std::map<std::string, Logged> table = logged_collectives(said);
  int kinds = 0;
  for (const auto& [kind, counts] : summary.at("communication").items()) {
    if (!counts.is_object()) continue;
    ++kinds;
    CAPTURE(kind);
    if (kind == "all_reduce") continue;
    CHECK(table[kind] == Logged{counts.at("calls").get<std::int64_t>(), counts.at("bytes").get<std::int64_t>()});
  }
  CHECK(kinds >= 4);
  CHECK(table["all_reduce"].calls >= summary.at("steps").at("attempted").get<std::int64_t>());
}

}  // namespace zt::test
