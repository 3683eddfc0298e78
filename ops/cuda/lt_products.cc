#include "ops/cuda/lt_products.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ops/cuda/fastest.h"
#include "ops/cuda/status.h"
#include "proto/base/check.h"
#include "proto/base/status.h"

namespace troupe::cuda {

uint32_t LtProductMatrices::Alignment() const {
  uintptr_t bits = 16;
  for (const void* p :
       {a, b, bias, residual, static_cast<const void*>(before_gelu), gelu_input,
        static_cast<const void*>(c)}) {
    bits |= reinterpret_cast<uintptr_t>(p);
  }
  return static_cast<uint32_t>(bits & -bits);
}

namespace {

cudaDataType_t DataTypeOf(DType type) {
  switch (type) {
    case DType::kF32:
      return CUDA_R_32F;
    case DType::kBF16:
      return CUDA_R_16BF;
    case DType::kF16:
      return CUDA_R_16F;
    default:
      CHECK(false) << "products of " << DTypeName(type);
      return CUDA_R_32F;
  }
}

constexpr int kGuesses = 6;  // of cuBLASLt's that are timed

// The bytes of an algorithm, which cuBLASLt promises to be all that it is, for
// the version that gave it.
std::string TextOf(const cublasLtMatmulAlgo_t& algorithm) {
  return absl::BytesToHexString(absl::string_view(
      reinterpret_cast<const char*>(&algorithm), sizeof(algorithm)));
}

absl::optional<cublasLtMatmulAlgo_t> AlgorithmOf(const std::string& text) {
  cublasLtMatmulAlgo_t algorithm;
  if (text.size() != 2 * sizeof(algorithm) ||
      !std::all_of(text.begin(), text.end(), absl::ascii_isxdigit)) {
    return absl::nullopt;
  }
  const std::string bytes = absl::HexStringToBytes(text);
  std::memcpy(&algorithm, bytes.data(), sizeof(algorithm));
  return algorithm;
}

cublasLtEpilogue_t EpilogueOf(const LtProductShape& s) {
  if (s.gelu_slope) return CUBLASLT_EPILOGUE_DGELU;
  if (s.gelu) {
    return s.bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS
                  : CUBLASLT_EPILOGUE_GELU_AUX;
  }
  return s.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

// The next multiple of an eighth of the power of two below; of 8 at least.
int64_t RoundedUp(int64_t n) {
  int64_t step = 8;
  while (step * 16 < n) step *= 2;
  return (n + step - 1) / step * step;
}

// The shape whose kernel is taken for this one.
LtProductShape Rounded(LtProductShape s) {
  s.accumulate = false;
  (s.varying == LtVarying::kM ? s.m : s.k) =
      RoundedUp(s.varying == LtVarying::kM ? s.m : s.k);
  return s;
}

}  // namespace

// One product in cuBLASLt's words.
//
// It stores matrices by columns. A row-major matrix read by columns is its
// transpose, so what it is asked for is c^T [n, m] = op(b)^T op(a)^T: our b is
// its A, our a its B, strides are leading dimensions, and a matrix that op
// leaves alone is left alone there too. A bias for each column of c is one for
// each row of c^T, which is the kind that it can fuse.
class LtProducts::Call {
 public:
  static absl::StatusOr<Call> Describe(const LtProductShape& s,
                                       const LtProductMatrices& matrices) {
    Call call;
    RETURN_IF_ERROR(call.DescribeMatrices(s));
    RETURN_IF_ERROR(call.DescribeProduct(s, matrices));
    return call;
  }

  // The kernels that cuBLASLt would take, the best guess first; none.
  absl::StatusOr<std::vector<cublasLtMatmulAlgo_t>> Guess(
      cublasLtHandle_t handle, uint32_t alignment);

  // All by which it chooses, in a line.
  std::string Text(const LtProductShape& s);

  // Whether this build's cuBLASLt can take it here.
  bool CanTake(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm) {
    cublasLtMatmulHeuristicResult_t result{};
    return cublasLtMatmulAlgoCheck(handle, &product_, &b_, &a_, &added_, &c_,
                                   &algorithm,
                                   &result) == CUBLAS_STATUS_SUCCESS &&
           result.state == CUBLAS_STATUS_SUCCESS &&
           result.workspaceSize <= Blas::kWorkspaceBytes;
  }

  // False where it turns out that the algorithm cannot, after all.
  absl::StatusOr<bool> Enqueue(const cublasLtMatmulAlgo_t& algorithm,
                               bool accumulate,
                               const LtProductMatrices& matrices,
                               const Blas& blas, cudaStream_t stream) {
    const bool adds = accumulate || matrices.residual != nullptr;
    const float alpha = 1.0f, beta = adds ? 1.0f : 0.0f;
    const void* const added =
        matrices.residual != nullptr ? matrices.residual : matrices.c;
    const cublasStatus_t code = cublasLtMatmul(
        blas.handle, &product_, &alpha, matrices.b, &b_, matrices.a, &a_, &beta,
        added, &added_, matrices.c, &c_, &algorithm, blas.workspace,
        Blas::kWorkspaceBytes, stream);
    if (code == CUBLAS_STATUS_NOT_SUPPORTED) return false;
    RETURN_IF_ERROR(ToStatus(code, "cublasLtMatmul"));
    return true;
  }

 private:
  Call() = default;

  // As they lie in memory, read by columns.
  absl::Status DescribeMatrices(const LtProductShape& s) {
    const cudaDataType_t in = DataTypeOf(s.type);
    const cudaDataType_t out = s.c_is_f32 ? CUDA_R_32F : in;
    const auto describe = [](cublasLtMatrixLayoutOpaque_t* to,
                             cudaDataType_t type, int64_t rows, int64_t columns,
                             int64_t stride) {
      return ToStatus(cublasLtMatrixLayoutInit(to, type, columns, rows,
                                               std::max(stride, columns)),
                      "cublasLtMatrixLayoutInit");
    };
    RETURN_IF_ERROR(s.transpose_a ? describe(&a_, in, s.k, s.m, s.a_stride)
                                  : describe(&a_, in, s.m, s.k, s.a_stride));
    RETURN_IF_ERROR(s.transpose_b ? describe(&b_, in, s.n, s.k, s.b_stride)
                                  : describe(&b_, in, s.k, s.n, s.b_stride));
    RETURN_IF_ERROR(describe(&added_, out, s.m, s.n,
                             s.residual ? s.residual_stride : s.c_stride));
    return describe(&c_, out, s.m, s.n, s.c_stride);
  }

  absl::Status DescribeProduct(const LtProductShape& s,
                               const LtProductMatrices& matrices) {
    // Sums are in f32. Of f32 inputs so are the products: TF32, which would
    // drop 13 bits of each factor, is another compute type, and is never asked
    // for.
    RETURN_IF_ERROR(ToStatus(
        cublasLtMatmulDescInit(&product_, CUBLAS_COMPUTE_32F, CUDA_R_32F),
        "cublasLtMatmulDescInit"));
    const cublasOperation_t of_a = s.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t of_b = s.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    RETURN_IF_ERROR(Set(CUBLASLT_MATMUL_DESC_TRANSA, of_b));
    RETURN_IF_ERROR(Set(CUBLASLT_MATMUL_DESC_TRANSB, of_a));
    RETURN_IF_ERROR(Set(CUBLASLT_MATMUL_DESC_EPILOGUE, EpilogueOf(s)));
    if (s.bias) {
      RETURN_IF_ERROR(Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, matrices.bias));
    }
    if (s.gelu || s.gelu_slope) {
      const void* const aux =
          s.gelu ? matrices.before_gelu : matrices.gelu_input;
      RETURN_IF_ERROR(Set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux));
      RETURN_IF_ERROR(Set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, s.n));
    }
    return absl::OkStatus();
  }

  template <typename T>
  absl::Status Set(cublasLtMatmulDescAttributes_t name, const T& value) {
    return ToStatus(
        cublasLtMatmulDescSetAttribute(&product_, name, &value, sizeof(value)),
        "cublasLtMatmulDescSetAttribute");
  }

  // All plain memory: describing a product allocates nothing.
  cublasLtMatmulDescOpaque_t product_;
  cublasLtMatrixLayoutOpaque_t a_, b_, c_;
  cublasLtMatrixLayoutOpaque_t added_;  // c, or the residual
};

absl::StatusOr<std::vector<cublasLtMatmulAlgo_t>> LtProducts::Call::Guess(
    cublasLtHandle_t handle, uint32_t alignment) {
  cublasLtMatmulPreferenceOpaque_t wishes;
  RETURN_IF_ERROR(ToStatus(cublasLtMatmulPreferenceInit(&wishes),
                           "cublasLtMatmulPreferenceInit"));
  const auto wish = [&](cublasLtMatmulPreferenceAttributes_t name,
                        const auto& value) {
    return ToStatus(cublasLtMatmulPreferenceSetAttribute(&wishes, name, &value,
                                                         sizeof(value)),
                    "cublasLtMatmulPreferenceSetAttribute");
  };
  RETURN_IF_ERROR(wish(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                       uint64_t{Blas::kWorkspaceBytes}));
  // Where k is split over several blocks, their sums meet in f32: those that
  // meet in bf16 or fp16 would be rounded more than once.
  RETURN_IF_ERROR(wish(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                       uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE}));
  for (const auto matrix : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                            CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                            CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                            CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    RETURN_IF_ERROR(wish(matrix, alignment));
  }
  std::array<cublasLtMatmulHeuristicResult_t, kGuesses> guesses{};
  int found = 0;
  const cublasStatus_t code =
      cublasLtMatmulAlgoGetHeuristic(handle, &product_, &b_, &a_, &added_, &c_,
                                     &wishes, kGuesses, guesses.data(), &found);
  std::vector<cublasLtMatmulAlgo_t> algorithms;
  if (code == CUBLAS_STATUS_NOT_SUPPORTED) return algorithms;
  RETURN_IF_ERROR(ToStatus(code, "cublasLtMatmulAlgoGetHeuristic"));
  for (int i = 0; i < found; ++i) {
    if (guesses[i].state != CUBLAS_STATUS_SUCCESS) continue;
    algorithms.push_back(guesses[i].algo);
  }
  return algorithms;
}

std::string LtProducts::Call::Text(const LtProductShape& s) {
  const auto type = [](cublasLtMatrixLayoutOpaque_t& matrix) {
    int32_t type = -1;
    cublasLtMatrixLayoutGetAttribute(&matrix, CUBLASLT_MATRIX_LAYOUT_TYPE,
                                     &type, sizeof(type), nullptr);
    return type;
  };
  return absl::StrCat("cuBLASLt ", cublasLtGetVersion(), ", workspace ",
                      Blas::kWorkspaceBytes, ", m ", s.m, " n ", s.n, " k ",
                      s.k, ", strides ", s.a_stride, " ", s.b_stride, " ",
                      s.c_stride, ", transposed ", s.transpose_a, " ",
                      s.transpose_b, ", types ", type(a_), " ", type(c_),
                      ", epilogue ", EpilogueOf(s), ", residual ", s.residual,
                      " ", s.residual_stride, ", aligned ", s.alignment);
}

LtProducts::LtProducts(size_t kept_max, FirstLaunches& launches,
                       LtChoices choices)
    : kept_max_(kept_max), launches_(launches), choices_(std::move(choices)) {
  CHECK_GE(kept_max, 1u);
}

size_t LtProducts::kept() const {
  absl::MutexLock lock(&mutex_);
  return kept_.size();
}

absl::optional<LtProducts::Kept> LtProducts::Find(const Key& key) {
  absl::MutexLock lock(&mutex_);
  const auto found = kept_.find(key);
  if (found == kept_.end()) return absl::nullopt;
  found->second.last_use = ++uses_;
  return found->second;
}

void LtProducts::Keep(const Key& key, Kept chosen) {
  absl::MutexLock lock(&mutex_);
  if (kept_.size() == kept_max_ && !kept_.contains(key)) {
    kept_.erase(std::min_element(kept_.begin(), kept_.end(),
                                 [](const auto& a, const auto& b) {
                                   return a.second.last_use < b.second.last_use;
                                 }));
  }
  chosen.last_use = ++uses_;
  kept_[key] = chosen;
}

absl::StatusOr<LtProducts::Kept> LtProducts::Choose(
    Call& call, const LtProductShape& shape, const LtProductMatrices& matrices,
    const Blas& blas, cudaStream_t stream, bool alone) {
  ASSIGN_OR_RETURN(const std::vector<cublasLtMatmulAlgo_t> guesses,
                   call.Guess(blas.handle, shape.alignment));
  if (guesses.empty()) return Kept{};
  const Kept first = {.supported = true, .algorithm = guesses[0]};
  if (choices_.kept == nullptr || !blas.prepared || guesses.size() == 1) {
    return first;
  }
  absl::Status status;
  const auto choose = [&]() -> std::string {
    // Where it waits for peers, or c is read, nothing is timed, and nothing
    // kept: another process may find out.
    if (!alone || shape.accumulate) return "";
    const absl::StatusOr<absl::optional<int>> fastest =
        FastestOf(static_cast<int>(guesses.size()), stream, [&](int guess) {
          // One that fails is one that cannot; what fails for good will again.
          const absl::StatusOr<bool> did = call.Enqueue(
              guesses[guess], /*accumulate=*/false, matrices, blas, stream);
          return did.ok() && *did;
        });
    status = fastest.status();
    if (!status.ok()) return "";
    return TextOf(guesses[fastest->value_or(0)]);
  };
  const absl::optional<std::string> kept = choices_.kept->FindOrChoose(
      absl::StrCat(choices_.gpu, ", ", call.Text(shape)), choose);
  RETURN_IF_ERROR(status);
  if (!kept.has_value()) return first;
  const absl::optional<cublasLtMatmulAlgo_t> algorithm = AlgorithmOf(*kept);
  if (!algorithm.has_value() || !call.CanTake(blas.handle, *algorithm)) {
    return first;
  }
  return Kept{.supported = true, .algorithm = *algorithm};
}

absl::StatusOr<bool> LtProducts::MultiplyVarying(
    const LtProductShape& shape, const LtProductMatrices& matrices,
    const Blas& blas, cudaStream_t stream) {
  ASSIGN_OR_RETURN(Call call, Call::Describe(shape, matrices));
  const LtProductShape rounded = Rounded(shape);
  const Key key = {rounded, false};
  const auto first = [&](const LtProductShape& of) -> absl::StatusOr<Kept> {
    ASSIGN_OR_RETURN(Call asked, Call::Describe(of, matrices));
    ASSIGN_OR_RETURN(const std::vector<cublasLtMatmulAlgo_t> guesses,
                     asked.Guess(blas.handle, of.alignment));
    if (guesses.empty()) return Kept{};
    return Kept{.supported = true, .algorithm = guesses[0]};
  };
  const auto takes = [&](const Kept& kept) {
    return kept.supported && call.CanTake(blas.handle, kept.algorithm);
  };
  const auto enqueue = [&](const Kept& kept) -> absl::StatusOr<bool> {
    if (!kept.supported) return false;
    return call.Enqueue(kept.algorithm, shape.accumulate, matrices, blas,
                        stream);
  };
  const absl::optional<Kept> kept = Find(key);
  if (kept.has_value() && takes(*kept)) return enqueue(*kept);
  // The kernel may have to be loaded.
  absl::StatusOr<bool> done;
  launches_.RunAlone([&](bool) {
    absl::StatusOr<Kept> chosen;
    if (kept.has_value()) {
      chosen = *kept;
    } else {
      chosen = first(rounded);
      if (chosen.ok()) Keep(key, *chosen);
    }
    if (chosen.ok() && !takes(*chosen)) chosen = first(shape);
    done = chosen.ok() ? enqueue(*chosen) : chosen.status();
  });
  return done;
}

absl::StatusOr<bool> LtProducts::Multiply(const LtProductShape& shape,
                                          const LtProductMatrices& matrices,
                                          const Blas& blas,
                                          cudaStream_t stream) {
  if (shape.varying != LtVarying::kNone) {
    return MultiplyVarying(shape, matrices, blas, stream);
  }
  CHECK_EQ(shape.bias, matrices.bias != nullptr);
  CHECK_EQ(shape.residual, matrices.residual != nullptr);
  CHECK(!shape.residual || (!shape.gelu && !shape.gelu_slope));
  CHECK(!shape.residual || !shape.accumulate);
  CHECK_EQ(shape.gelu, matrices.before_gelu != nullptr);
  CHECK_EQ(shape.gelu_slope, matrices.gelu_input != nullptr);
  CHECK(!shape.gelu_slope || (!shape.gelu && !shape.bias));
  ASSIGN_OR_RETURN(Call call, Call::Describe(shape, matrices));
  const auto enqueue = [&](const Kept& kept) -> absl::StatusOr<bool> {
    if (!kept.supported) return false;
    return call.Enqueue(kept.algorithm, shape.accumulate, matrices, blas,
                        stream);
  };
  Key key = {shape, blas.prepared};
  key.first.accumulate = false;
  if (const absl::optional<Kept> kept = Find(key)) return enqueue(*kept);
  // Two threads may both ask; the answer is the same.
  absl::StatusOr<bool> done;
  launches_.RunAlone([&](bool alone) {
    absl::StatusOr<Kept> chosen =
        Choose(call, shape, matrices, blas, stream, alone);
    done = chosen.ok() ? enqueue(*chosen) : chosen.status();
    if (!done.ok()) return;
    chosen->supported = *done;
    Keep(key, *chosen);
  });
  return done;
}

}  // namespace troupe::cuda
