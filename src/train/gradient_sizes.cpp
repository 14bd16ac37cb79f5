#include "train/gradient_sizes.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "checkpoint/stored_type.h"

namespace zt {

std::int64_t GradientSizes::between(int first, int last) const {
  return std::accumulate(counts.begin() + (first - lowest), counts.begin() + (last - lowest), std::int64_t{0});
}

GradientSizes sizes_of(std::span<const float> gradient, std::span<const float> exact) {
  GradientSizes sizes;
  sizes.elements = static_cast<std::int64_t>(gradient.size());
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const float value = gradient[i];
    if (!std::isfinite(value)) {
      ++sizes.not_finite;
    } else if (value == 0.0F) {
      ++sizes.zeros;
      if (!exact.empty() && exact[i] != 0.0F) ++sizes.vanished;
    } else {
      ++sizes.counts.at(static_cast<std::size_t>(std::ilogb(value) - GradientSizes::lowest));
    }
  }
  return sizes;
}

std::vector<float> gradient_of(Session& session, const std::string& pattern) {
  const Layout& layout = session.layout();
  Engine& engine = session.engine();
  Device& device = engine.context().device;
  session.wait_for_device();
  std::vector<float> gradient;
  std::vector<std::byte> raw;
  for (int unit = 0; unit < static_cast<int>(layout.units().size()); ++unit) {
    for (const Segment segment : all_segments) {
      if (!is_trained(segment) || layout.unit(unit).segment(segment).elements == 0) continue;
      const ConstTensorView sums = engine.summed_gradients(unit, segment);
      layout.for_each_piece(unit, segment, 0, sums.count, [&](const Piece& piece) {
        if (layout.tensor(piece.tensor).name.find(pattern) == std::string::npos) return;
        const ConstTensorView part = sums.part(piece.offset, piece.count);
        raw.resize(static_cast<std::size_t>(part.bytes()));
        device.copy(Stream::compute, raw.data(), part.data, part.bytes());
        device.synchronize(Stream::compute);
        const std::size_t before = gradient.size();
        gradient.resize(before + static_cast<std::size_t>(part.count));
        to_floats(stored_type(part.dtype), raw.data(), part.count, gradient.data() + before);
      });
    }
  }
  return gradient;
}

}  // namespace zt
