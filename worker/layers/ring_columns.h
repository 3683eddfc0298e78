// Where the products of one hop of a ring find their operands: for each sample
// and head, queries [rows, head_dim], keys or values [rows of the hop's rank,
// head_dim], and that rank's columns of [rows, keys].
#ifndef TROUPE_WORKER_LAYERS_RING_COLUMNS_H_
#define TROUPE_WORKER_LAYERS_RING_COLUMNS_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "ops/tensor.h"
#include "proto/plan/layout.h"
#include "worker/layers/op_binding.h"

namespace troupe {

class RingColumns {
 public:
  struct Head {
    int64_t sample = 0;
    int64_t head = 0;
    int64_t kv_head = 0;
    bool shares_keys = false;  // with the head before
    int64_t width = 0;
    Range columns;

    // Of [batch, sequence, heads].
    Tensor OfQueries(const Tensor& tensor) const {
      return tensor.Slice(0, sample, sample + 1)
          .Slice(2, head * width, (head + 1) * width);
    }
    // Of [batch, sequence, key-value heads].
    Tensor OfKeys(const Tensor& tensor) const {
      return tensor.Slice(0, sample, sample + 1)
          .Slice(2, kv_head * width, (kv_head + 1) * width);
    }
    // Of [batch, heads, sequence, keys].
    Tensor OfRows(const Tensor& tensor) const {
      return tensor.Slice(0, sample, sample + 1)
          .Slice(1, head, head + 1)
          .Slice(3, columns.begin, columns.end);
    }
  };

  // `moved`: the input that goes around, keys or values. REQUIRES an op with a
  // hop, whose positions are one run on each rank.
  RingColumns(const OpBinding& op, absl::string_view moved);

  void ForHeads(absl::FunctionRef<void(const Head&)> body) const;

  // Whether an input is where an output is.
  static bool SamePlace(const OpBinding& op, absl::string_view input,
                        absl::string_view output);

 private:
  int64_t samples_ = 0;
  int64_t heads_ = 0;
  int64_t kv_heads_ = 0;
  int64_t width_ = 0;
  Range columns_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_LAYERS_RING_COLUMNS_H_
