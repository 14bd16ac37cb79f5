// Windows of running tokens that overlap, so that every token but the first few is predicted from a long past.
#pragma once

#include <vector>

#include "data/source.h"

namespace zt {

// Over `windows`, which lie side by side in one text, or in one document after the other (Source::goes_on): windows of
// the same length that start `stride` tokens apart within a document, the last of them where it ends. Of each but a
// document's first only the positions count that none before it has: every token that counts in `windows` counts once,
// and none is predicted from another document. A document shorter than a window has one, masked behind its end.
// 1 <= stride <= length. `windows` must outlive it.
class SlidingSource final : public Source {
 public:
  SlidingSource(const Source& windows, std::int64_t stride);

  SampleShape shape() const override { return windows_.shape(); }
  std::int64_t samples() const override { return samples_; }
  void sample(std::int64_t index, const SampleView& out) const override;
  std::int64_t losses(std::int64_t index) const override;
  bool masks_losses() const override { return stride_ < length_ || windows_.masks_losses(); }

 private:
  struct Document {
    std::int64_t first_sample;  // of this source
    std::int64_t first_window;  // of windows_
    std::int64_t tokens;        // that count
  };
  struct Place {
    std::int64_t first_window;   // of the document
    std::int64_t start;          // within the document
    std::int64_t count;          // inputs
    std::int64_t first_counted;  // within the sample
  };
  Place place_of(std::int64_t index) const;
  void add_document(std::int64_t first_window, std::int64_t next_window);

  const Source& windows_;
  std::int64_t stride_, length_, samples_ = 0;
  std::vector<Document> documents_;
};

}  // namespace zt
