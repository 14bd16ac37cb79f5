#include "train/diagnosis.h"

#include <cmath>
#include <optional>
#include <vector>

#include "device/checking_device.h"

namespace zt {

namespace {

struct BadWeight {
  std::string tensor;
  std::int64_t element = 0;
  float value = 0.0F;
  DType dtype = DType::f32;
};

// The first of the weights that this rank updates which is not finite in the dtype it is computed with.
std::optional<BadWeight> find_bad_weight(Session& session, Device& device) {
  Engine& engine = session.engine();
  const Layout& layout = session.layout();
  std::vector<std::byte> host;
  std::optional<BadWeight> bad;
  for (int unit = 0; unit < static_cast<int>(layout.units().size()); ++unit) {
    for (const Segment segment : all_segments) {
      if (layout.unit(unit).segment(segment).elements == 0) continue;
      const auto [begin, end] = engine.updated_range(unit, segment);
      const ConstTensorView resting = engine.resting_parameters(unit, segment);
      layout.for_each_piece(unit, segment, begin, end, [&](const Piece& piece) {
        if (bad) return;
        const ConstTensorView values = resting.part(piece.offset, piece.count);
        host.resize(static_cast<std::size_t>(values.bytes()));
        device.copy(Stream::compute, host.data(), values.data, values.bytes());
        device.synchronize(Stream::compute);
        const ConstTensorView copy(host.data(), values.count, values.dtype);
        if (const auto found = first_not_finite(copy)) {
          bad = BadWeight{layout.tensor(piece.tensor).name, piece.tensor_offset + found->element, found->value,
                          values.dtype};
        }
      });
      if (bad) return bad;
    }
  }
  return std::nullopt;
}

std::string in_words(float value) { return std::isnan(value) ? "NaN" : value > 0 ? "+infinity" : "-infinity"; }

// The text of the lowest number among the ranks' "NUMBER text"; "" if none has any.
std::string earliest_of(Communicator& communicator, const std::string& mine) {
  std::string first;
  long long earliest = 0;
  for (const std::string& text : communicator.all_gather_strings(mine)) {
    if (text.empty()) continue;
    const long long number = std::stoll(text);
    if (!first.empty() && number >= earliest) continue;
    earliest = number;
    first = text.substr(text.find(' ') + 1);
  }
  return first;
}

}  // namespace

std::string diagnose_not_finite(Session& session, Device& device, double scale) {
  // A step starts from weights that an update has left: they may be beyond the range of their dtype already.
  std::string weight;
  if (const auto bad = find_bad_weight(session, device)) {
    weight = "0 the last update made a weight that is not finite: " + in_words(bad->value) + " at element " +
             std::to_string(bad->element) + " of " + bad->tensor + " (" + std::string(name_of(bad->dtype)) + ")";
  }
  weight = earliest_of(session.communicator(), weight);
  if (!weight.empty()) return weight;
  CheckingDevice checking(device, [&](const void* address) { return session.tensor_at(address); });
  session.replay_micro_steps(checking, scale);
  // Ranks run different micro-batches: the one that came upon it in the earliest operation speaks, the lowest rank
  // among equals.
  std::string mine;
  if (const auto& finding = checking.finding()) {
    mine = std::to_string(finding->operation_number) + " rank " + std::to_string(session.communicator().rank()) +
           ": the first value that is not finite is " + in_words(finding->value) + " at element " +
           std::to_string(finding->element) + " of " + (finding->tensor.empty() ? "a tensor" : finding->tensor) + " (" +
           std::string(name_of(finding->dtype)) + "), written by " + finding->operation;
  }
  const std::string first = earliest_of(session.communicator(), mine);
  if (first.empty())
    return "run again, every value of the passes was finite: the overflow is in the sum over micro-batches";
  return first;
}

}  // namespace zt
