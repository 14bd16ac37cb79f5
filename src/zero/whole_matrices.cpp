#include "zero/whole_matrices.h"

#include <algorithm>
#include <map>
#include <utility>

#include "zero/step_parts.h"

namespace zt {

namespace {

constexpr std::int64_t width = sizeof(float);

MatrixShape shape_of(const TensorPlace& tensor) { return {tensor.shape.at(0), tensor.shape.at(1)}; }

std::vector<int> units_with_matrices(const Layout& layout) {
  std::vector<int> units;
  for (const TensorPlace& tensor : layout.tensors()) {
    if (updates_whole(tensor) && (units.empty() || units.back() != tensor.unit)) units.push_back(tensor.unit);
  }
  return units;
}

}  // namespace

WholeMatrices::WholeMatrices(Engine& engine, MatrixRule& rule)
    : engine_(engine),
      rule_(rule),
      units_(units_with_matrices(engine.context().layout)),
      alone_(engine.updated_extent() == Extent::whole || engine.context().communicator.size() == 1) {
  const EngineContext& context = engine.context();
  if (!alone_) deal_out();
  // The same on all ranks, also on one that will own no unit: the plan of one is the plan of all.
  std::vector<MatrixShape> shapes;
  for (const int unit : units_) {
    const SegmentLayout& segment = context.layout.unit(unit).segment(Segment::matrices);
    most_elements_ = std::max(most_elements_, segment.elements);
    for (const int tensor : segment.tensors) {
      const TensorPlace& place = context.layout.tensor(tensor);
      if (updates_whole(place)) shapes.push_back(shape_of(place));
    }
  }
  rule_.prepare(context.device, shapes);
  if (alone_) {
    whole_ = context.device.allocate(most_elements_ * width, MemoryCategory::workspace, "directions of a unit");
    return;
  }
  const auto share = [&](const char* name) {
    return context.communicator.allocate(context.device, most_elements_ * width, MemoryCategory::communication, name);
  };
  slices_ = share("slices of directions");
  unit_ = share("directions of a unit");
}

// Owners follow each other from round to round, so that units of many sizes are not all one rank's.
void WholeMatrices::deal_out() {
  const Layout& layout = engine_.context().layout;
  const int ranks = layout.ranks();
  std::map<std::int64_t, std::vector<int>> by_size;
  for (const int unit : units_) by_size[layout.unit(unit).segment(Segment::matrices).slice].push_back(unit);
  int owner = 0;
  for (const auto& [slice, units] : by_size) {
    for (std::size_t first = 0; first < units.size(); first += static_cast<std::size_t>(ranks)) {
      Round& round = rounds_.emplace_back();
      round.slice = slice;
      round.units.assign(static_cast<std::size_t>(ranks), -1);
      round.counts.assign(static_cast<std::size_t>(ranks), 0);
      const std::size_t end = std::min(units.size(), first + static_cast<std::size_t>(ranks));
      for (std::size_t index = first; index < end; ++index) {
        round.units[static_cast<std::size_t>(owner)] = units[index];
        round.counts[static_cast<std::size_t>(owner)] = slice;
        owner = (owner + 1) % ranks;
      }
    }
  }
}

template <typename Visit>
void WholeMatrices::for_each_piece(FinishContext& context, int unit, const Visit& visit) {
  const Layout& layout = engine_.context().layout;
  const ActivitySpan span(engine_.context().device, Activity::update, unit);
  const std::int64_t begin = engine_.updated_range(unit, Segment::matrices).first;
  const BorrowedState state = context.states.borrow(unit, Segment::matrices);
  for (const OptimizerPiece& piece : pieces_of(context, state, unit, Segment::matrices)) {
    if (piece.whole) visit(piece, layout.tensor(piece.tensor).offset + piece.offset - begin);
  }
  context.states.give_back(unit, Segment::matrices);
}

void WholeMatrices::find_directions(FinishContext& context, int unit, TensorView directions,
                                    const OptimizerStep& step) {
  Device& device = engine_.context().device;
  for_each_piece(context, unit, [&](const OptimizerPiece& piece, std::int64_t offset) {
    rule_.direction(device, piece, directions.part(offset, piece.master.count), step);
  });
}

void WholeMatrices::apply(FinishContext& context, int unit, ConstTensorView directions, const OptimizerStep& step) {
  const Layout& layout = engine_.context().layout;
  Device& device = engine_.context().device;
  for_each_piece(context, unit, [&](const OptimizerPiece& piece, std::int64_t offset) {
    rule_.apply(device, piece, directions.part(offset, piece.master.count), shape_of(layout.tensor(piece.tensor)),
                step);
  });
}

void WholeMatrices::orthogonalize(int unit, TensorView whole) {
  const Layout& layout = engine_.context().layout;
  Device& device = engine_.context().device;
  const ActivitySpan span(device, Activity::update, unit);
  for (const int index : layout.unit(unit).segment(Segment::matrices).tensors) {
    const TensorPlace& tensor = layout.tensor(index);
    if (updates_whole(tensor)) rule_.orthogonalize(device, whole.part(tensor.offset, tensor.count), shape_of(tensor));
  }
}

void WholeMatrices::update_alone(FinishContext& context, int unit, const OptimizerStep& step) {
  const std::int64_t elements = engine_.context().layout.unit(unit).segment(Segment::matrices).elements;
  const TensorView whole{whole_.data(), elements, DType::f32};
  find_directions(context, unit, whole, step);
  orthogonalize(unit, whole);
  apply(context, unit, whole, step);
}

void WholeMatrices::run_round(FinishContext& context, const Round& round, const OptimizerStep& step) {
  const EngineContext& engine = engine_.context();
  Communicator& communicator = engine.communicator;
  const auto ranks = static_cast<std::int64_t>(round.units.size());
  const int mine = round.units[static_cast<std::size_t>(communicator.rank())];
  const Region slices{slices_.get(), 0, round.slice * width};
  const Region unit{unit_.get(), 0, round.slice * width};
  const TensorView whole = unit_->view(0, mine >= 0 ? ranks * round.slice : 0, DType::f32);
  const TensorView all_slices = slices_->view(0, ranks * round.slice, DType::f32);
  const auto for_each_unit = [&](const auto& visit) {
    for (std::int64_t owner = 0; owner < ranks; ++owner) {
      const int index = round.units[static_cast<std::size_t>(owner)];
      if (index >= 0) visit(index, all_slices.part(owner * round.slice, round.slice));
    }
  };

  for_each_unit([&](int index, TensorView slice) { find_directions(context, index, slice, step); });
  communicator.wait_until_read(std::exchange(unit_read_, {}));
  slices_read_ = communicator.all_to_all(engine.device, Stream::compute, slices,
                                         {.counts = round.counts, .to_owners = true}, whole);
  if (mine >= 0) orthogonalize(mine, whole);
  communicator.wait_until_read(std::exchange(slices_read_, {}));
  unit_read_ = communicator.all_to_all(engine.device, Stream::compute, unit,
                                       {.counts = round.counts, .to_owners = false}, all_slices);
  for_each_unit([&](int index, TensorView slice) { apply(context, index, slice, step); });
}

void WholeMatrices::update(FinishContext& context, const OptimizerStep& step) {
  if (alone_) {
    for (const int unit : units_) update_alone(context, unit, step);
  }
  for (const Round& round : rounds_) run_round(context, round, step);
}

std::unique_ptr<WholeMatrices> make_whole_matrices(Engine& engine, Optimizer& optimizer) {
  if (optimizer.matrix_rule() == nullptr || units_with_matrices(engine.context().layout).empty()) return nullptr;
  return std::make_unique<WholeMatrices>(engine, *optimizer.matrix_rule());
}

}  // namespace zt
