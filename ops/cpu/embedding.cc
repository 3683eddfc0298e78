#include "ops/embedding.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ops/cpu/cpu_device.h"
#include "ops/cpu/gradient_sum.h"
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

// Which row of the table of positions is that of the token at `row`.
template <typename Args>
int64_t PositionRow(const Args& args, int64_t row) {
  const int64_t time = args.tokens.dim(1);
  const int64_t at = args.first_position + row % time;
  if (!args.documents.defined()) return at;
  const int32_t* const documents = args.documents.template data<int32_t>();
  return at - documents[row / time * args.documents.stride(0) + at];
}

// A row of a table, and one of dy that is added to it.
using RowOfTable = std::pair<int64_t, int64_t>;

// Each thread takes some columns, and adds up what goes to a row of the table,
// in order.
void AddRows(CpuDevice& cpu, const Tensor& dy, std::vector<RowOfTable> added,
             const Tensor& table) {
  std::sort(added.begin(), added.end());
  const int64_t n = dy.columns();
  WithActivationType(dy.dtype(), [&]<typename T>() {
    cpu.ForColumns(dy.rows(), n, [&](int64_t begin, int64_t end) {
      for (auto at = added.begin(); at != added.end();) {
        const int64_t row = at->first;
        const GradientSum sum(cpu, table, row * n + begin, end - begin);
        for (; at != added.end() && at->first == row; ++at) {
          cpu.loops<T>().add(DataFrom<T>(dy, at->second * n + begin),
                             sum.data(), end - begin, 1.0f);
        }
        sum.Add();
      }
    });
  });
}

}  // namespace

void Embedding(Device& device, const EmbeddingArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  const int64_t n = args.y.columns();
  WithActivationType(args.y.dtype(), [&]<typename T>() {
    cpu.ForRows(args.y.rows(), n, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t at = TableRow(args, args.wte, row);
        const int64_t position = PositionRow(args, row);
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

void EmbeddingBackward(Device& device, const EmbeddingBackwardArgs& args) {
  CpuDevice& cpu = CpuDevice::From(device);
  const int64_t rows = args.dy.rows();
  if (args.dwte.defined()) {
    std::vector<RowOfTable> added;
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t at = TableRow(args, args.dwte, row);
      if (at >= 0) added.push_back({at, row});
    }
    AddRows(cpu, args.dy, std::move(added), args.dwte);
  }
  if (args.dwpe.defined()) {
    std::vector<RowOfTable> added;
    for (int64_t row = 0; row < rows; ++row) {
      added.push_back({PositionRow(args, row), row});
    }
    AddRows(cpu, args.dy, std::move(added), args.dwpe);
  }
}

}  // namespace troupe::cpu
