#include "device/cuda/attention_backward.h"

namespace zt::cuda::attention {

template void backward_on_tensor_cores<__nv_bfloat16, 32>(const Problem& problem, const Launch& launch);
template void backward_on_tensor_cores<__nv_bfloat16, 64>(const Problem& problem, const Launch& launch);
template void backward_on_tensor_cores<__nv_bfloat16, 96>(const Problem& problem, const Launch& launch);
template void backward_on_tensor_cores<__nv_bfloat16, 128>(const Problem& problem, const Launch& launch);

}  // namespace zt::cuda::attention
