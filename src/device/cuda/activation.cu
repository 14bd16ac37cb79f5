// Activation functions and their derivatives, in one pass.
#include "device/cuda/activation_functions.h"
#include "device/cuda/elementwise.h"

namespace zt::cuda {
namespace {

template <class Function, typename T>
struct ForwardBody {
  const T* in;
  T* out;

  template <int N>
  __device__ __forceinline__ Elements<T, N> load(std::int64_t i) const {
    return load_elements<N>(in + i);
  }
  template <int N>
  __device__ __forceinline__ void store(std::int64_t i, Elements<T, N> elements) const {
#pragma unroll
    for (T& element : elements.values) element = from_float<T>(Function::value(to_float(element)));
    store_elements(out + i, elements);
  }
};

template <class Function, typename T>
struct BackwardBody {
  const T* in;
  const T* d_out;
  T* d_in;

  template <int N>
  struct Loaded {
    Elements<T, N> in, gradient;
  };
  template <int N>
  __device__ __forceinline__ Loaded<N> load(std::int64_t i) const {
    return {load_elements<N>(in + i), load_elements<N>(d_out + i)};
  }
  template <int N>
  __device__ __forceinline__ void store(std::int64_t i, const Loaded<N>& loaded) const {
    Elements<T, N> result;
#pragma unroll
    for (int e = 0; e < N; ++e) {
      result.values[e] =
          from_float<T>(Function::slope(to_float(loaded.in.values[e])) * to_float(loaded.gradient.values[e]));
    }
    store_elements(d_in + i, result);
  }
};

}  // namespace

void run(const ActivationForward& op, const Launch& where) {
  by_type(op.out.dtype, [&]<typename T>(T*) {
    with_function(op.activation, [&]<class Function>(Function) {
      for_elements<elements_per_pack<T>, 2>("activation_forward",
                                            ForwardBody<Function, T>{pointer<T>(op.in), pointer<T>(op.out)},
                                            op.out.count, is_aligned(op.in.data) && is_aligned(op.out.data), where);
    });
  });
}

void run(const ActivationBackward& op, const Launch& where) {
  const bool packed = is_aligned(op.in.data) && is_aligned(op.d_out.data) && is_aligned(op.d_in.data);
  by_type(op.d_in.dtype, [&]<typename T>(T*) {
    with_function(op.activation, [&]<class Function>(Function) {
      const BackwardBody<Function, T> body{pointer<T>(op.in), pointer<T>(op.d_out), pointer<T>(op.d_in)};
      for_elements<elements_per_pack<T>, 1>("activation_backward", body, op.d_in.count, packed, where);
    });
  });
}

}  // namespace zt::cuda
