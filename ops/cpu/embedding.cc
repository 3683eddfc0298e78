#include "ops/embedding.h"

#include <cstring>

#include "ops/cpu/cpu_device.h"
#include "ops/cpu/kernels.h"

namespace troupe::cpu {
namespace {

int64_t CheckedToken(const int32_t* tokens, int64_t row, int64_t vocabulary) {
  const int32_t token = tokens[row];
  CHECK(token >= 0 && token < vocabulary)
      << "token " << token << " at " << row << ", vocabulary of " << vocabulary;
  return token;
}

}  // namespace

void Embedding(Device& device, const EmbeddingArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  const int32_t* tokens = args.tokens.data<int32_t>();
  const float* wte = args.wte.data<float>();
  const float* wpe = args.wpe.defined() ? args.wpe.data<float>() : nullptr;
  float* y = args.y.data<float>();
  const int64_t n = args.y.columns();
  const int64_t time = args.tokens.dim(1);
  cpu.ForRows(args.y.rows(), n, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t token = CheckedToken(tokens, row, args.wte.dim(0));
      std::memcpy(y + row * n, wte + token * n, n * sizeof(float));
      if (wpe == nullptr) continue;
      const int64_t position = args.first_position + row % time;
      cpu.simd().add(wpe + position * n, y + row * n, n, 1.0f);
    }
  });
}

// Each thread takes some columns and goes through all rows in order.
void EmbeddingBackward(Device& device, const EmbeddingBackwardArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  const int32_t* tokens = args.tokens.data<int32_t>();
  const float* dy = args.dy.data<float>();
  float* dwte = args.dwte.defined() ? args.dwte.data<float>() : nullptr;
  float* dwpe = args.dwpe.defined() ? args.dwpe.data<float>() : nullptr;
  const int64_t n = args.dy.columns();
  const int64_t rows = args.dy.rows();
  const int64_t time = args.tokens.dim(1);
  cpu.ForColumns(rows, n, [&](int64_t begin, int64_t end) {
    for (int64_t row = 0; row < rows; ++row) {
      const float* from = dy + row * n + begin;
      if (dwte != nullptr) {
        const int64_t token = CheckedToken(tokens, row, args.dwte.dim(0));
        cpu.simd().add(from, dwte + token * n + begin, end - begin, 1.0f);
      }
      if (dwpe != nullptr) {
        const int64_t position = args.first_position + row % time;
        cpu.simd().add(from, dwpe + position * n + begin, end - begin, 1.0f);
      }
    }
  });
}

}  // namespace troupe::cpu
