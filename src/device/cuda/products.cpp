#include "device/cuda/products.h"

#include <cublasLt.h>

#include <map>
#include <stdexcept>
#include <string>

#include "core/errors.h"
#include "device/cuda/kernels.h"
#include "device/cuda/product_kernels.h"
#include "device/cuda/product_plan.h"
#include "device/gpu/workspace.h"

namespace zt::cuda {
namespace {

bool is_empty(const MatMul& op) { return op.m <= 0 || op.n <= 0; }

// Whether cuBLASLt's GELU takes part: the tanh form, on rows of multiples of 8 elements that start at 16 bytes.
bool takes_gelu(const MatMul& op, const void* beside) {
  return op.activation == Activation::gelu_new && op.ldc % 8 == 0 &&
         reinterpret_cast<std::uintptr_t>(beside) % 16 == 0 &&
         reinterpret_cast<std::uintptr_t>(op.out.data) % 16 == 0 && op.out.dtype == op.a.dtype;
}

// The most that one call may do; whatever it cannot is left to kernels of ours.
Epilogue wanted_epilogue(const MatMul& op, const GpuOptions& options) {
  if (options.gelu_epilogue && !op.add) {
    if (op.activated && !op.activation_input && takes_gelu(op, op.activated.data)) {
      return op.bias ? Epilogue::gelu_bias : Epilogue::gelu;
    }
    if (op.activation_input && !op.bias && takes_gelu(op, op.activation_input.data)) return Epilogue::gelu_derivative;
  }
  return op.bias ? Epilogue::bias : Epilogue::none;
}

// What to try instead if cuBLASLt has nothing for a shape with this epilogue.
Epilogue simpler(Epilogue epilogue) { return epilogue == Epilogue::gelu_bias ? Epilogue::bias : Epilogue::none; }

// What of a product's activation its epilogue did not see to.
void run_activation(const MatMul& op, Epilogue epilogue, const Launch& launch) {
  const TensorView out = op.out.part(0, op.m * op.n);
  if (op.activated && !has_gelu(epilogue)) {
    const ConstTensorView in = op.activation_input ? op.activation_input : ConstTensorView(out);
    cuda::run(ActivationForward{.in = in, .out = op.activated, .activation = op.activation}, launch);
  }
  if (op.activation_input && epilogue != Epilogue::gelu_derivative) {
    cuda::run(ActivationBackward{.in = op.activation_input, .d_out = out, .d_in = out, .activation = op.activation},
              launch);
  }
}

}  // namespace

struct Products::Plans {
  GpuOptions options;
  cublasLtHandle_t library = nullptr;
  std::map<ProductShape, std::unique_ptr<ProductPlan>> known;  // null: cuBLASLt has nothing

  struct Chosen {
    ProductShape shape;
    const ProductPlan* plan = nullptr;
  };

  const ProductPlan* find(const ProductShape& shape, cublasStatus_t* status) {
    const auto found = known.find(shape);
    if (found != known.end()) return found->second.get();
    return known.emplace(shape, make_plan(library, shape, status)).first->second.get();
  }

  // Errors: Error, if cuBLASLt cannot compute the plain product.
  template <typename Error>
  Chosen choose(const MatMul& op) {
    Epilogue epilogue = wanted_epilogue(op, options);
    while (true) {
      const ProductShape shape = shape_of(op, options.tf32, epilogue);
      cublasStatus_t status = CUBLAS_STATUS_NOT_SUPPORTED;
      if (const ProductPlan* plan = find(shape, &status)) return {shape, plan};
      if (epilogue == Epilogue::none) {
        throw Error("cuBLASLt " + std::to_string(cublasLtGetVersion()) + " cannot compute the product " +
                    text_of(shape) + " on this GPU: " + text_of(status));
      }
      epilogue = simpler(epilogue);
    }
  }

  // The bias as the epilogue reads it: in out's format, at 16 bytes. If it is not so it is converted into `room`.
  static const void* bias_for(const MatMul& op, const Launch& launch, std::byte* room) {
    const bool fits = op.bias.dtype == op.out.dtype && reinterpret_cast<std::uintptr_t>(op.bias.data) % 16 == 0;
    if (fits) return op.bias.data;
    cuda::run(Cast{.in = op.bias.part(0, op.n), .out = TensorView(room, op.n, op.out.dtype)}, launch);
    return room;
  }

  void multiply(const MatMul& op, const Chosen& chosen, const Launch& launch) {
    const Epilogue epilogue = chosen.shape.epilogue;
    const ProductPlan& plan = *chosen.plan;
    if (has_bias(epilogue)) {
      set_attribute(plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                    bias_for(op, launch, launch.workspace + gpu::product_workspace));
    }
    void* stored = op.out.data;
    if (has_gelu(epilogue)) {
      set_attribute(plan, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, op.out.data);
      stored = op.activated.data;
    } else if (epilogue == Epilogue::gelu_derivative) {
      set_attribute(plan, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, op.activation_input.data);
    }
    const float alpha = 1.0F;
    const float beta = op.add ? 1.0F : 0.0F;
    const cublasStatus_t status =
        cublasLtMatmul(library, plan.descriptor.get(), &alpha, op.b.data, plan.a.get(), op.a.data, plan.b.get(), &beta,
                       stored, plan.out.get(), stored, plan.out.get(), &plan.algorithm, launch.workspace,
                       static_cast<std::size_t>(gpu::product_workspace), launch.stream);
    if (status != CUBLAS_STATUS_SUCCESS) {
      throw RunError("cuBLASLt could not run the product " + text_of(chosen.shape) + ": " + text_of(status));
    }
  }
};

Products::Products(const GpuOptions& options) : plans_(std::make_unique<Plans>()) {
  plans_->options = options;
  const cublasStatus_t status = cublasLtCreate(&plans_->library);
  if (status != CUBLAS_STATUS_SUCCESS) {
    throw UserError("cuBLASLt " + std::to_string(cublasLtGetVersion()) + " could not be started: " + text_of(status) +
                    ". It needs a working driver and some free memory on the GPU (nvidia-smi shows both)");
  }
}

Products::~Products() { static_cast<void>(cublasLtDestroy(plans_->library)); }

void Products::prepare(const MatMul& op) {
  if (is_empty(op) || op.k <= 0) return;
  plans_->choose<UserError>(op);
}

void Products::run(const MatMul& op, cudaStream_t stream, std::byte* workspace) {
  if (is_empty(op)) return;
  if ((op.activated || op.activation_input) && op.ldc != op.n) {
    throw std::logic_error("a product with an activation whose rows do not follow each other");
  }
  const Launch launch{stream, workspace};
  if (op.k <= 0) {
    store_bias(op, op.add, launch);
    run_activation(op, Epilogue::none, launch);
    return;
  }
  const Plans::Chosen chosen = plans_->choose<RunError>(op);
  plans_->multiply(op, chosen, launch);
  const Epilogue epilogue = chosen.shape.epilogue;
  if (op.bias && !has_bias(epilogue)) store_bias(op, true, launch);
  run_activation(op, epilogue, launch);
}

}  // namespace zt::cuda
