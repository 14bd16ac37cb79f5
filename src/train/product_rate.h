// The rate of plain matrix products on a run's own shapes and dtype: what its throughput is measured against.
#pragma once

#include "train/session.h"

namespace zt {

// Runs the matrix products of a forward and a backward pass alone, twice, and takes the better rate: multiplications
// and additions per second of this rank. All ranks call it. Overwrites activations and gradients.
double measure_product_rate(Session& session, Device& device);

}  // namespace zt
