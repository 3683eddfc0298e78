// The matrix products of an op, by pass: their sizes say how fast they are and
// what they take while they run.
#ifndef TROUPE_PROTO_PLAN_OPS_PRODUCTS_H_
#define TROUPE_PROTO_PLAN_OPS_PRODUCTS_H_

#include <cstdint>
#include <vector>

#include "proto/unit.pb.h"

namespace troupe {

// [m, k] x [k, n], after transposition.
struct MatrixProduct {
  enum Form {
    kPlain,       // y = x W
    kTransposed,  // y = x W^T
    kGradient,    // dW += x^T dy, added up in f32
  };
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  Form form = kPlain;
  double times = 1;  // as many of this size
};

struct PassProducts {
  std::vector<MatrixProduct> forward;
  std::vector<MatrixProduct> backward_input;
  std::vector<MatrixProduct> backward_weight;
  // One call multiplies the rows of each expert with weights of its own.
  bool grouped = false;
};

// Rows that multiply a weight [in, out], or with `in_out` false [out, in]:
//
//                      W kept [in, out]       W kept [out, in]
//   forward            y = x W                y = x W^T
//   backward, input    dx = dy W^T            dx = dy W
//   backward, weight   dW += x^T dy           dW += dy^T x
struct WeightProduct {
  int64_t in = 0;
  int64_t out = 0;
  bool in_out = false;
  int64_t rows = 0;
  double times = 1;
};
// Nothing of no rows. `trained`: whether the weight has a gradient.
void AddWeightProduct(const WeightProduct& product, bool trained,
                      PassProducts& products);

// Those of queries and keys, or of probabilities and values, head by head; both
// gradients are made in the input's pass.
struct HeadProduct {
  bool makes_scores = false;  // else it weights values
  int64_t rows = 0;           // queries
  int64_t keys = 0;
  int64_t width = 0;  // of a head
  double times = 1;   // heads of all samples
};
PassProducts ProductsOfHeads(const HeadProduct& product);

// Rows that a pass over one micro-batch multiplies: those that are expected
// where their number differs (TensorSpec.expected_rows).
int64_t MultipliedRows(const TensorSpec& x);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_OPS_PRODUCTS_H_
