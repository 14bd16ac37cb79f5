#include "device/cuda/attention_forward.h"

namespace zt::cuda::attention {

template void forward_on_tensor_cores<__half, 32>(const Problem& problem, const Launch& launch);
template void forward_on_tensor_cores<__half, 64>(const Problem& problem, const Launch& launch);
template void forward_on_tensor_cores<__half, 96>(const Problem& problem, const Launch& launch);
template void forward_on_tensor_cores<__half, 128>(const Problem& problem, const Launch& launch);

}  // namespace zt::cuda::attention
