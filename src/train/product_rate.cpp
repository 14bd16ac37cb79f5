#include "train/product_rate.h"

#include <algorithm>
#include <chrono>
#include <variant>

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
    const auto start = std::chrono::steady_clock::now();
    inner().run(stream, plain);
    inner().synchronize(inner().record(stream));
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    flops_ += product_flops(plain);
  }
  double rate() const { return seconds_ > 0.0 ? flops_ / seconds_ : 0.0; }

 private:
  double seconds_ = 0.0, flops_ = 0.0;
};

}  // namespace

double measure_product_rate(Session& session, Device& device) {
  double best = 0.0;
  for (int repetition = 0; repetition < 2; ++repetition) {
    ProductsOnly products(device);
    session.measure_pass(products);
    best = std::max(best, products.rate());
  }
  return best;
}

}  // namespace zt
