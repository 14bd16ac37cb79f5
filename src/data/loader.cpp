#include "data/loader.h"

#include <algorithm>
#include <cassert>

#include "data/permutation.h"

namespace zt {
namespace {

template <typename T>
std::span<T> row_of(std::vector<T>& values, std::int64_t row, std::int64_t columns) {
  return std::span(values).subspan(static_cast<std::size_t>(row * columns), static_cast<std::size_t>(columns));
}

}  // namespace

Loader::Loader(const Source& source, Order order, std::uint64_t seed, std::int64_t micro, std::int64_t global_batch)
    : source_(source),
      order_(order),
      seed_(seed),
      micro_(micro),
      global_batch_(global_batch),
      samples_(source.samples()),
      shape_(source.shape()) {
  assert(micro >= 1 && global_batch >= 1 && samples_ >= 1);
}

std::int64_t Loader::present(std::int64_t first_sample) const {
  if (order_ == Order::shuffled) return global_batch_;
  return std::clamp<std::int64_t>(samples_ - first_sample, 0, global_batch_);
}

template <typename Visit>
void Loader::visit_samples(std::int64_t first, std::int64_t count, Visit&& visit) const {
  std::int64_t epoch = -1;
  Permutation order(1, 0);
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t index = first + i;
    if (order_ == Order::shuffled) {
      if (epoch_of(index) != epoch) {
        epoch = epoch_of(index);
        order = epoch_order(samples_, seed_, epoch);
      }
      index = order(index % samples_);
    }
    visit(i, index);
  }
}

std::int64_t Loader::valid(std::int64_t first_sample) const {
  const std::int64_t samples_present = present(first_sample);
  if (!source_.masks_losses()) return samples_present * shape_.losses();
  std::int64_t counted = 0;
  visit_samples(first_sample, samples_present,
                [&](std::int64_t /*i*/, std::int64_t index) { counted += source_.losses(index); });
  return counted;
}

void Loader::fill(std::int64_t first_sample, std::int64_t j, MicroBatch& out) const {
  assert(first_sample >= 0 && j >= 0);
  const auto size = [&](std::int64_t columns) { return static_cast<std::size_t>(micro_ * columns); };
  out.tokens.resize(size(shape_.tokens));
  out.token_targets.resize(size(shape_.token_targets));
  out.features.resize(size(shape_.features));
  out.value_targets.resize(size(shape_.value_targets));
  out.valid_rows.resize(size(1));
  out.rows = micro_;
  out.first_sample_in_global_batch = j * micro_;
  out.valid = 0;

  const auto view_of = [&](std::int64_t row) {
    return SampleView{row_of(out.tokens, row, shape_.tokens), row_of(out.token_targets, row, shape_.token_targets),
                      row_of(out.features, row, shape_.features), row_of(out.value_targets, row, shape_.value_targets)};
  };
  const std::int64_t filled =
      std::clamp<std::int64_t>(present(first_sample) - out.first_sample_in_global_batch, 0, micro_);
  visit_samples(first_sample + out.first_sample_in_global_batch, filled, [&](std::int64_t row, std::int64_t index) {
    source_.sample(index, view_of(row));
    out.valid_rows[static_cast<std::size_t>(row)] = 1;
    out.valid += source_.losses(index);
  });
  for (std::int64_t row = filled; row < micro_; ++row) {
    const SampleView view = view_of(row);
    std::ranges::fill(view.tokens, 0);
    std::ranges::fill(view.token_targets, -1);
    std::ranges::fill(view.features, 0.0F);
    std::ranges::fill(view.value_targets, 0.0F);
    out.valid_rows[static_cast<std::size_t>(row)] = 0;
  }
}

std::int64_t Loader::micro_batch_bytes() const {
  return micro_ * 4 * (shape_.tokens + shape_.token_targets + shape_.features + shape_.value_targets + 1);
}

}  // namespace zt
