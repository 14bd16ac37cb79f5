// A device that looks at what every operation wrote and remembers the first value that is not finite. A step that
// went wrong is run again on it to name the culprit.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "device/device_decorator.h"

namespace zt {

struct NotFinite {
  std::int64_t element = 0;
  float value = 0.0F;
};
// The first element of a tensor in host memory that is infinite or NaN.
std::optional<NotFinite> first_not_finite(ConstTensorView tensor);

struct NotFiniteFinding {
  std::string operation;
  std::int64_t operation_number = 0;  // operations run before it
  std::string tensor;                 // in words, or ""
  std::int64_t element = 0;           // within the tensor
  DType dtype = DType::f32;
  float value = 0.0F;
};

class CheckingDevice final : public DeviceDecorator {
 public:
  // `tensor_at` names the tensor that an address belongs to at the time of the call.
  using NameTensor = std::function<std::string(const void* address)>;
  CheckingDevice(Device& inner, NameTensor tensor_at) : DeviceDecorator(inner), tensor_at_(std::move(tensor_at)) {}

  void run(Stream stream, const Operation& operation) override;
  const std::optional<NotFiniteFinding>& finding() const { return finding_; }

 private:
  NameTensor tensor_at_;
  std::int64_t operations_ = 0;
  std::optional<NotFiniteFinding> finding_;
};

}  // namespace zt
