// Windows of a running text that overlap, so that every token but the first few is predicted from a long past.
#pragma once

#include "data/source.h"

namespace zt {

// Over `windows`, which lie side by side in one text: windows of the same length that start `stride` tokens apart, the
// last of them where the text ends. Of each but the first only the positions count that none before it has: every
// token that counts in `windows` counts once. 1 <= stride <= length. `windows` must outlive it.
class SlidingSource final : public Source {
 public:
  SlidingSource(const Source& windows, std::int64_t stride);

  SampleShape shape() const override { return windows_.shape(); }
  std::int64_t samples() const override { return samples_; }
  void sample(std::int64_t index, const SampleView& out) const override;
  std::int64_t losses(std::int64_t index) const override { return length_ - first_counted(index); }
  bool masks_losses() const override { return stride_ < length_; }

 private:
  std::int64_t start_of(std::int64_t index) const;
  std::int64_t first_counted(std::int64_t index) const;  // within the window

  const Source& windows_;
  std::int64_t stride_, length_, total_, samples_;
};

}  // namespace zt
