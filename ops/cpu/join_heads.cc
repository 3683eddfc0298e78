#include "ops/join_heads.h"

#include <cstring>
#include <vector>

#include "ops/activation_type.h"
#include "ops/cpu/cpu_device.h"
#include "ops/cpu/kernels.h"

namespace troupe::cpu {
namespace {

// A row of each tensor; null where it is not defined.
template <typename T>
struct JoinedRow {
  T* q;
  T* k;
  T* v;
  T* shared;
  T* y;
};

template <typename T>
T* RowOf(const Tensor& tensor, int64_t row) {
  if (!tensor.defined()) return nullptr;
  const int64_t time = tensor.dim(1);
  return tensor.data<T>() + row / time * tensor.stride(0) +
         row % time * tensor.stride(1);
}

template <typename T>
void Copy(const T* from, int64_t columns, T* to) {
  std::memcpy(to, from, columns * sizeof(T));
}

// Sizes of heads, and the two orders of columns that turn.
class JoinedHeads {
 public:
  explicit JoinedHeads(const JoinHeadsArgs& args)
      : args_(args),
        r_(args.shared_width),
        n_(args.key_width - args.shared_width),
        v_(args.value_width),
        keys_begin_(args.heads * args.key_width),
        values_begin_(keys_begin_ + args.kv_heads * args.key_width) {}

  template <typename T>
  void Join(const JoinedRow<T>& row) const {
    for (int64_t head = 0; head < args_.heads; ++head) {
      const T* const q = row.q + head * args_.key_width;
      T* const to = row.y + head * args_.key_width;
      Turned(q + n_, to);
      Copy(q, n_, to + r_);
    }
    for (int64_t head = 0; head < args_.kv_heads; ++head) {
      T* const to = Key(row, head);
      if (r_ > 0) Turned(row.shared, to);
      Copy(row.k + head * OfKeys(), n_, to + r_);
      Copy(ValueOf(row, head), v_, Value(row, head));
    }
  }

  // `sums` has room for r floats.
  template <typename T>
  void Part(const JoinedRow<T>& row, float* sums) const {
    for (int64_t head = 0; row.q != nullptr && head < args_.heads; ++head) {
      const T* const from = row.y + head * args_.key_width;
      T* const q = row.q + head * args_.key_width;
      Copy(from + r_, n_, q);
      for (int64_t i = 0; i < r_; ++i) q[n_ + SourceOf(i)] = from[i];
    }
    for (int64_t head = 0; head < args_.kv_heads; ++head) {
      if (row.k != nullptr) {
        Copy(Key(row, head) + r_, n_, row.k + head * OfKeys());
      }
      T* const value = ValueOf(row, head);
      if (value != nullptr) Copy(Value(row, head), v_, value);
    }
    if (row.shared == nullptr) return;
    for (int64_t i = 0; i < r_; ++i) sums[i] = 0;
    for (int64_t head = 0; head < args_.kv_heads; ++head) {
      const T* const key = Key(row, head);
      for (int64_t i = 0; i < r_; ++i) sums[i] += FromElement(key[i]);
    }
    for (int64_t i = 0; i < r_; ++i) {
      row.shared[SourceOf(i)] = ToElement<T>(sums[i]);
    }
  }

 private:
  int64_t SourceOf(int64_t turned) const {
    return TurnedSource(turned, r_, args_.interleaved);
  }
  // Columns of a head of k.
  int64_t OfKeys() const { return n_ + (args_.values_in_keys ? v_ : 0); }

  template <typename T>
  void Turned(const T* from, T* to) const {
    if (!args_.interleaved) return Copy(from, r_, to);
    for (int64_t i = 0; i < r_; ++i) to[i] = from[SourceOf(i)];
  }
  template <typename T>
  T* Key(const JoinedRow<T>& row, int64_t head) const {
    return row.y + keys_begin_ + head * args_.key_width;
  }
  template <typename T>
  T* Value(const JoinedRow<T>& row, int64_t head) const {
    return row.y + values_begin_ + head * v_;
  }
  // Where it comes from.
  template <typename T>
  T* ValueOf(const JoinedRow<T>& row, int64_t head) const {
    if (!args_.values_in_keys) {
      return row.v == nullptr ? nullptr : row.v + head * v_;
    }
    return row.k == nullptr ? nullptr : row.k + head * OfKeys() + n_;
  }

  const JoinHeadsArgs& args_;
  const int64_t r_;
  const int64_t n_;
  const int64_t v_;
  const int64_t keys_begin_;
  const int64_t values_begin_;
};

// body(row, sums) of each row.
template <typename Body>
void ForRows(Device& device, const JoinHeadsArgs& args, const Body& body) {
  const Tensor& y = args.y;
  CpuDevice::From(device).ForRows(
      y.dim(0) * y.dim(1), y.dim(2), [&](int64_t begin, int64_t end) {
        WithActivationType(y.dtype(), [&]<typename T>() {
          std::vector<float> sums(args.shared_width);
          for (int64_t row = begin; row < end; ++row) {
            body(JoinedRow<T>{.q = RowOf<T>(args.q, row),
                              .k = RowOf<T>(args.k, row),
                              .v = RowOf<T>(args.v, row),
                              .shared = RowOf<T>(args.shared, row),
                              .y = RowOf<T>(args.y, row)},
                 sums.data());
          }
        });
      });
}

}  // namespace

void JoinHeads(Device& device, const JoinHeadsArgs& args) {
  const JoinedHeads heads(args);
  ForRows(device, args, [&](const auto& row, float*) { heads.Join(row); });
}

void JoinHeadsBackward(Device& device, const JoinHeadsArgs& args) {
  const JoinedHeads heads(args);
  ForRows(device, args,
          [&](const auto& row, float* sums) { heads.Part(row, sums); });
}

}  // namespace troupe::cpu
