#include <cassert>

#include "data/source.h"

namespace zt {
namespace {

class WindowSource final : public Source {
 public:
  WindowSource(std::shared_ptr<const TokenArray> tokens, std::int64_t first, std::int64_t count, std::int64_t length)
      : tokens_(std::move(tokens)), first_(first), length_(length), samples_(count > 0 ? (count - 1) / length : 0) {
    assert(first >= 0 && count >= 0 && first + count <= tokens_->size());
  }

  SampleShape shape() const override { return {.tokens = length_, .token_targets = length_}; }
  std::int64_t samples() const override { return samples_; }

  void sample(std::int64_t index, const SampleView& out) const override {
    assert(index >= 0 && index < samples_);
    const std::int64_t start = first_ + index * length_;
    tokens_->copy(start, out.tokens);
    tokens_->copy(start + 1, out.token_targets);
  }

 private:
  std::shared_ptr<const TokenArray> tokens_;
  std::int64_t first_, length_, samples_;
};

}  // namespace

std::unique_ptr<Source> make_window_source(std::shared_ptr<const TokenArray> tokens, std::int64_t first,
                                           std::int64_t count, std::int64_t length) {
  return std::make_unique<WindowSource>(std::move(tokens), first, count, length);
}

}  // namespace zt
