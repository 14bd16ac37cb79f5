#include "train/product_rate.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "device/device_decorator.h"

namespace zt {

namespace {

// Runs matrix products and their like only, and times them.
class ProductsOnly final : public DeviceDecorator {
 public:
  using DeviceDecorator::DeviceDecorator;
  void run(Stream stream, const Operation& operation) override {
    const auto* const product = std::get_if<MatMul>(&operation);
    // Collectives fold gradients from inside their calls; what they leave is not looked at.
    if (product == nullptr) return;
    MatMul plain = *product;
    plain.activated = {};
    plain.activation_input = {};
    const TimeMark begin = inner().mark(stream);
    inner().run(stream, plain);
    spans_.emplace_back(begin, inner().mark(stream));
    flops_ += product_flops(plain);
  }
  // Once what was run is over.
  double rate() {
    double seconds = 0.0;
    for (const auto& [begin, end] : spans_) seconds += inner().seconds_between(begin, end);
    spans_.clear();
    return seconds > 0.0 ? flops_ / seconds : 0.0;
  }

 private:
  std::vector<std::pair<TimeMark, TimeMark>> spans_;
  double flops_ = 0.0;
};

}  // namespace

double measure_product_rate(Session& session, Device& device) {
  double best = 0.0;
  for (int repetition = 0; repetition < 2; ++repetition) {
    ProductsOnly products(device);
    session.measure_pass(products);
    session.wait_for_device();
    best = std::max(best, products.rate());
  }
  return best;
}

}  // namespace zt
