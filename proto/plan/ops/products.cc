#include "proto/plan/ops/products.h"

#include "proto/plan/tensor_spec.h"

namespace troupe {

void AddWeightProduct(const WeightProduct& product, bool trained,
                      PassProducts& products) {
  const auto& [in, out, in_out, rows, times] = product;
  if (rows == 0) return;
  products.forward.push_back(
      {.m = rows,
       .n = out,
       .k = in,
       .form = in_out ? MatrixProduct::kPlain : MatrixProduct::kTransposed,
       .times = times});
  products.backward_input.push_back(
      {.m = rows,
       .n = in,
       .k = out,
       .form = in_out ? MatrixProduct::kTransposed : MatrixProduct::kPlain,
       .times = times});
  if (!trained) return;
  products.backward_weight.push_back({.m = in_out ? in : out,
                                      .n = in_out ? out : in,
                                      .k = rows,
                                      .form = MatrixProduct::kGradient,
                                      .times = times});
}

PassProducts ProductsOfHeads(const HeadProduct& product) {
  const auto& [makes_scores, rows, keys, width, times] = product;
  const MatrixProduct scores = {.m = rows,
                                .n = keys,
                                .k = width,
                                .form = MatrixProduct::kTransposed,
                                .times = times};
  const MatrixProduct weighted = {
      .m = rows, .n = width, .k = keys, .times = times};
  const MatrixProduct gradient = {.m = keys,
                                  .n = width,
                                  .k = rows,
                                  .form = MatrixProduct::kGradient,
                                  .times = times};
  return {.forward = {makes_scores ? scores : weighted},
          .backward_input = {makes_scores ? weighted : scores, gradient},
          .backward_weight = {}};
}

int64_t MultipliedRows(const TensorSpec& x) {
  return x.has_expected_rows() ? x.expected_rows() : RowsOf(x);
}

}  // namespace troupe
