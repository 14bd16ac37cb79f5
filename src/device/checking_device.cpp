#include "device/checking_device.h"

#include <cmath>

namespace zt {

void CheckingDevice::run(Stream stream, const Operation& operation) {
  inner().run(stream, operation);
  if (finding_) return;
  ++operations_;
  inner().synchronize(inner().record(stream));
  for (const ConstTensorView& output : outputs_of(operation)) {
    if (!output) continue;
    dispatch(output.dtype, [&]<typename T>(T*) {
      const T* values = output.as<T>();
      for (std::int64_t i = 0; i < output.count; ++i) {
        const float value = to_float(values[i]);
        if (std::isfinite(value)) continue;
        finding_ = NotFiniteFinding{std::string(name_of(operation)), operations_, tensor_at_(output.data), i, output.count, output.dtype,
                                    value};
        return;
      }
    });
    if (finding_) return;
  }
}

}  // namespace zt
