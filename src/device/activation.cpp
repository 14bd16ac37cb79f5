#include <array>

#include "core/errors.h"
#include "device/operations.h"

namespace zt {

Activation activation_from_name(std::string_view name) {
  for (const auto activation : {Activation::identity, Activation::gelu_new, Activation::gelu, Activation::relu,
                                Activation::silu, Activation::tanh}) {
    if (name == name_of(activation)) return activation;
  }
  throw UserError("unknown activation \"" + std::string(name) + "\": use identity, gelu_new, gelu, relu, silu or tanh");
}

}  // namespace zt
