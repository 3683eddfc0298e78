#include "ops/embedding.h"

#include <utility>

#include "ops/cpu/cpu_device.h"
#include "ops/cpu/kernels.h"

namespace troupe::cpu {
namespace {

// Which row of a table is that of the token at `row`; -1: another rank's.
template <typename Args>
int64_t TableRow(const Args& args, const Tensor& table, int64_t row) {
  const int32_t token = args.tokens.template data<int32_t>()[row];
  const int64_t rows = table.dim(0);
  const int64_t vocabulary = args.vocabulary > 0 ? args.vocabulary : rows;
  CHECK(token >= 0 && token < vocabulary)
      << "token " << token << " at " << row << ", vocabulary of " << vocabulary;
  const int64_t at = token - args.first_token;
  return at >= 0 && at < rows ? at : -1;
}

}  // namespace

void Embedding(Device& device, const EmbeddingArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  const int64_t n = args.y.columns();
  const int64_t time = args.tokens.dim(1);
  WithActivationType(args.y.dtype(), [&]<typename T>() {
    cpu.ForRows(args.y.rows(), n, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t at = TableRow(args, args.wte, row);
        const int64_t position = args.first_position + row % time;
        const T* token = at < 0 ? nullptr : DataFrom<T>(args.wte, at * n);
        const T* other = DataFrom<T>(args.wpe, position * n);
        if (token == nullptr) std::swap(token, other);
        T* y = DataFrom<T>(args.y, row * n);
        if (token == nullptr) {
          cpu.loops<T>().fill(y, n, 0.0f);
        } else {  // nothing dropped: a sum, or a copy where there is but one
          cpu.loops<T>().dropout(token, other, y, n, RawDropout{});
        }
      }
    });
  });
}

// Each thread takes some columns and goes through all rows in order.
void EmbeddingBackward(Device& device, const EmbeddingBackwardArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
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
        if (args.dwte.defined()) {
          const int64_t at = TableRow(args, args.dwte, row);
          if (at >= 0) add_into(dwte, at, row);
        }
        if (dwpe != nullptr) {
          add_into(dwpe, args.first_position + row % time, row);
        }
      }
    });
  });
}

}  // namespace troupe::cpu
