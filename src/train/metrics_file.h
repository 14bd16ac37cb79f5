// metrics.jsonl, as it is read again: by what compares and replays runs, and by a run that goes on.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace zt {

// Calls `visit` for each record, in order. A last line without its end is one that was being written when the run was
// cut off: it is left out, and a notice about it is returned (empty: there was none). A missing file has no records.
// RunError, with file and line, where a line is no JSON object.
std::string read_metrics(const std::string& path, const std::function<void(nlohmann::ordered_json&&)>& visit);

// Before lines are added to the file: cuts an unfinished last line off, or ends it where only its end is missing.
// One longer than any record is only ended. RunError where that cannot be done. A missing file is left missing.
void mend_last_line(const std::string& path);

}  // namespace zt
