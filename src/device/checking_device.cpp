#include "device/checking_device.h"

#include <cmath>
#include <vector>

namespace zt {

std::optional<NotFinite> first_not_finite(ConstTensorView tensor) {
  return dispatch(tensor.dtype, [&]<typename T>(T*) -> std::optional<NotFinite> {
    const T* values = tensor.as<T>();
    for (std::int64_t i = 0; i < tensor.count; ++i) {
      const float value = to_float(values[i]);
      if (!std::isfinite(value)) return NotFinite{i, value};
    }
    return std::nullopt;
  });
}

void CheckingDevice::run(Stream stream, const Operation& operation) {
  inner().run(stream, operation);
  if (finding_) return;
  ++operations_;
  inner().synchronize(inner().record(stream));
  for (const ConstTensorView& output : outputs_of(operation)) {
    if (!output) continue;
    // The device's memory need not be the host's.
    std::vector<std::byte> values(static_cast<std::size_t>(output.bytes()));
    inner().copy(stream, values.data(), output.data, output.bytes());
    inner().synchronize(inner().record(stream));
    const auto found = first_not_finite({values.data(), output.count, output.dtype});
    if (!found) continue;
    finding_ = NotFiniteFinding{std::string(name_of(operation)),
                                operations_,
                                tensor_at_(output.data),
                                found->element,
                                output.dtype,
                                found->value};
    return;
  }
}

}  // namespace zt
