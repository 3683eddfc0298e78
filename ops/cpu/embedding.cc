#include "ops/embedding.h"

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
  const int64_t n = args.y.columns();
  const int64_t time = args.tokens.dim(1);
  WithActivationType(args.y.dtype(), [&]<typename T>() {
    cpu.ForRows(args.y.rows(), n, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t token = CheckedToken(tokens, row, args.wte.dim(0));
        const int64_t position = args.first_position + row % time;
        // Nothing dropped: a sum, or a copy where there are no positions.
        cpu.loops<T>().dropout(DataFrom<T>(args.wte, token * n),
                               DataFrom<T>(args.wpe, position * n),
                               DataFrom<T>(args.y, row * n), n, RawDropout{});
      }
    });
  });
}

// Each thread takes some columns and goes through all rows in order.
void EmbeddingBackward(Device& device, const EmbeddingBackwardArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  const int32_t* tokens = args.tokens.data<int32_t>();
  float* dwte = DataFrom<float>(args.dwte, 0);
  float* dwpe = DataFrom<float>(args.dwpe, 0);
  const int64_t n = args.dy.columns();
  const int64_t rows = args.dy.rows();
  const int64_t time = args.tokens.dim(1);
  WithActivationType(args.dy.dtype(), [&]<typename T>() {
    cpu.ForColumns(rows, n, [&](int64_t begin, int64_t end) {
      const auto add_into = [&](float* table, int64_t at, int64_t row) {
        cpu.loops<T>().add(DataFrom<T>(args.dy, row * n + begin),
                           table + at * n + begin, end - begin, 1.0f);
      };
      for (int64_t row = 0; row < rows; ++row) {
        if (dwte != nullptr) {
          add_into(dwte, CheckedToken(tokens, row, args.dwte.dim(0)), row);
        }
        if (dwpe != nullptr) {
          add_into(dwpe, args.first_position + row % time, row);
        }
      }
    });
  });
}

}  // namespace troupe::cpu
