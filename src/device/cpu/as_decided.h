// What the device has decided of an update (UpdateDecision), put into the operation.
#pragma once

#include "device/operations.h"

namespace zt::cpu {

// Calls `update` with the operation as the device's decision, if there is one, leaves it.
template <class Op, typename Update>
void as_decided(const Op& op, Update&& update) {
  if (op.decision == nullptr) return update(op);
  if (op.decision->apply == 0) return;
  Op decided = op;
  if constexpr (requires { decided.factor; }) decided.factor = op.decision->factor;
  update(decided);
}

}  // namespace zt::cpu
