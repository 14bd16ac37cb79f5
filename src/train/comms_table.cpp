#include "train/comms_table.h"

#include <array>
#include <utility>

#include "train/estimate_report.h"
#include "train/words.h"

namespace zt {

namespace {

double message_bytes(const CollectiveGroup& group, const CollectiveSum& sum) {
  return static_cast<double>(group.message) * static_cast<double>(sum.calls);
}

std::string rate_text(double bytes, double seconds) {
  return bytes > 0.0 && seconds > 0.0 ? count_in_words(8.0 * bytes / seconds) + "bit/s" : "-";
}

std::string purpose_of(const CollectiveGroup& group, const CommsTableContext& context) {
  std::string text(name_of(group.activity));
  if (group.unit >= 0 && group.unit < static_cast<std::int64_t>(context.units.size()))
    text += " of " + context.units[static_cast<std::size_t>(group.unit)];
  if (group.pass != Activity::step && group.pass != group.activity) text += " in " + std::string(name_of(group.pass));
  return text;
}

constexpr std::size_t name_width = 16;
constexpr std::array<std::size_t, 7> widths = {13, 8, 15, 9, 9, 12, 12};

std::string row(const std::string& name, const std::array<std::string, widths.size()>& cells,
                const std::string& purpose) {
  std::string line = "  " + name + std::string(name.size() < name_width ? name_width - name.size() : 1, ' ');
  for (std::size_t index = 0; index < cells.size(); ++index) {
    const std::string& cell = cells.at(index);
    const std::size_t width = widths.at(index);
    line += std::string(cell.size() < width ? width - cell.size() : 1, ' ') + cell;
  }
  return purpose.empty() ? line : line + "  " + purpose;
}

}  // namespace

double bus_bytes(const CollectiveGroup& group, const CollectiveSum& sum, int ranks) {
  if (ranks == 1) return 0.0;
  if (group.kind == CollectiveKind::all_reduce)
    return 2.0 * static_cast<double>(ranks - 1) / static_cast<double>(ranks) * message_bytes(group, sum);
  return group.kind == CollectiveKind::broadcast ? message_bytes(group, sum) : static_cast<double>(sum.sent);
}

std::vector<std::string> comms_table(const CollectiveSums& sums, std::int64_t steps, const CommsTableContext& context) {
  const std::string title = "collectives of " + std::to_string(steps) + " step(s) on rank 0 (comms_logger)";
  if (sums.empty()) return {title + ": none of those that are logged"};
  std::vector<std::string> lines = {title + "; message and sent in bytes"};
  lines.push_back(row("collective", {"message", "calls", "sent", "total", "average", "algbw", "busbw"},
                      context.tells_purpose ? "for" : ""));
  for (const auto& [group, sum] : sums) {
    lines.push_back(row(
        std::string(name_of(group.kind)),
        {std::to_string(group.message), std::to_string(sum.calls), std::to_string(sum.sent), short_seconds(sum.seconds),
         short_seconds(sum.seconds / static_cast<double>(sum.calls)), rate_text(message_bytes(group, sum), sum.seconds),
         rate_text(bus_bytes(group, sum, context.ranks), sum.seconds)},
        context.tells_purpose ? purpose_of(group, context) : ""));
  }
  return lines;
}

std::string call_line(std::int64_t step, const CollectiveGroup& group, const CollectiveSum& call,
                      const CommsTableContext& context) {
  return "step " + std::to_string(step) + "  " + std::string(name_of(group.kind)) + "  message " +
         std::to_string(group.message) + " B  sent " + std::to_string(call.sent) + " B  " +
         short_seconds(call.seconds) + "  algbw " + rate_text(message_bytes(group, call), call.seconds) + "  busbw " +
         rate_text(bus_bytes(group, call, context.ranks), call.seconds) +
         (context.tells_purpose ? "  " + purpose_of(group, context) : "");
}

}  // namespace zt
