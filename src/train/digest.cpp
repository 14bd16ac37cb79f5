#include "train/digest.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "comm/agree.h"
#include "core/errors.h"
#include "zero/held_state.h"

namespace zt {

namespace {

// A sum of checksums in the device's memory.
class Sum {
 public:
  explicit Sum(Session& session) : device_(session.engine().context().device), scratch_(session.checksum_scratch()) {
    device_.run(Stream::compute, Fill{.out = {scratch_.data(), 2, DType::f32}, .value = 0.0F});
  }
  void add(ConstTensorView values, std::uint64_t tensor, std::int64_t first) {
    device_.run(Stream::compute,
                zt::Checksum{
                    .in = values, .tensor_index = tensor, .first_element = first, .out = scratch_.as<std::uint64_t>()});
  }
  std::uint64_t value() {
    std::uint64_t sum = 0;
    device_.copy(Stream::compute, &sum, scratch_.data(), sizeof sum);
    device_.synchronize(Stream::compute);
    return sum;
  }

 private:
  Device& device_;
  const Buffer& scratch_;
};

// Checksums of the parameters computed with: of all tensors together, or tensor by tensor.
std::vector<std::uint64_t> parameter_checksums(Session& session, bool by_tensor) {
  Engine& engine = session.engine();
  const Layout& layout = session.layout();
  std::vector<std::uint64_t> sums;
  engine.begin(Pass::inference);
  Sum all(session);
  for (const int unit : session.model().order(Pass::inference)) {
    engine.acquire(unit);
    const std::vector<int>& tensors = layout.unit(unit).tensors;
    for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) {
      Sum own = by_tensor ? Sum(session) : all;
      own.add(engine.parameter(unit, static_cast<int>(tensor)), static_cast<std::uint64_t>(tensors[tensor]), 0);
      if (by_tensor) sums.push_back(own.value());
    }
    engine.release(unit);
  }
  if (!by_tensor) sums.push_back(all.value());
  return sums;
}

// Those of all ranks, rank after rank.
std::vector<std::vector<std::uint64_t>> gathered(Communicator& communicator, const std::vector<std::uint64_t>& mine) {
  const std::size_t count = mine.size();
  std::vector<std::int64_t> all(count * static_cast<std::size_t>(communicator.size()), 0);
  for (std::size_t i = 0; i < count; ++i)
    all[static_cast<std::size_t>(communicator.rank()) * count + i] = static_cast<std::int64_t>(mine[i]);
  communicator.all_reduce_sum(all);
  std::vector<std::vector<std::uint64_t>> ranks;
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(communicator.size()); ++rank) {
    ranks.emplace_back();
    for (std::size_t i = 0; i < count; ++i) ranks.back().push_back(static_cast<std::uint64_t>(all[rank * count + i]));
  }
  return ranks;
}

// What most ranks say; of equally many the lowest rank's.
std::uint64_t most_said(const std::vector<std::vector<std::uint64_t>>& ranks, std::size_t index) {
  std::map<std::uint64_t, int> votes;
  for (const auto& rank : ranks) ++votes[rank[index]];
  std::uint64_t best = ranks.front()[index];
  for (const auto& rank : ranks) {
    if (votes[rank[index]] > votes[best]) best = rank[index];
  }
  return best;
}

std::string tensor_name(const Session& session, std::size_t index) {
  for (const int unit : session.model().order(Pass::inference)) {
    const std::vector<int>& tensors = session.layout().unit(unit).tensors;
    if (index < tensors.size()) return session.layout().tensor(tensors[index]).name;
    index -= tensors.size();
  }
  return "";
}

}  // namespace

Digest digest_of(Session& session) {
  Communicator& communicator = session.communicator();
  communicator.set_purpose(Purpose::control);
  const auto tensors = static_cast<std::uint64_t>(session.layout().tensors().size());
  Sum sum(session);
  for (int moment = 0; moment < session.optimizer().moments(); ++moment) {
    visit_owned_state(session.engine(), session.states(), moment, [&](const StateRun& run) {
      sum.add(run.values, static_cast<std::uint64_t>(moment) * tensors + static_cast<std::uint64_t>(run.tensor),
              run.offset);
    });
  }
  auto moments = static_cast<std::int64_t>(sum.value());
  communicator.all_reduce_sum({&moments, 1});
  return {session.weights_checksum(), static_cast<std::uint64_t>(moments)};
}

void require_equal_copies(Session& session) {
  Communicator& communicator = session.communicator();
  if (session.settings().zero.stage == 3 || communicator.size() == 1) return;
  communicator.set_purpose(Purpose::control);
  const auto sums = gathered(communicator, parameter_checksums(session, false));
  const std::uint64_t right = most_said(sums, 0);
  if (std::all_of(sums.begin(), sums.end(), [&](const auto& rank) { return rank.front() == right; })) return;
  const auto by_tensor = gathered(communicator, parameter_checksums(session, true));
  std::string found;
  for (std::size_t rank = 0; rank < by_tensor.size(); ++rank) {
    for (std::size_t tensor = 0; tensor < by_tensor[rank].size(); ++tensor) {
      if (by_tensor[rank][tensor] == most_said(by_tensor, tensor)) continue;
      found +=
          (found.empty() ? "" : "; ") + ("rank " + std::to_string(rank)) + ", first in " + tensor_name(session, tensor);
      break;
    }
  }
  fail_together<RunError>(
      communicator, "after step " + std::to_string(session.steps().attempted) +
                        " ranks hold different copies of the parameters: " + found +
                        (by_tensor.size() == 2 ? " (of two, either may be wrong)" : "") +
                        ". Memory or network of that machine is faulty: go on from the last checkpoint elsewhere");
}

}  // namespace zt
